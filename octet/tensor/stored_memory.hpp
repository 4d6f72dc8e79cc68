#pragma once

#include "octet/tensor/storage.hpp"
#include "octet/tensor/stream.hpp"

namespace octet {

/// Memory for a variable in a storage: codes, and after them the scales, if there are any. Contents undefined.
Stored empty_stored(Stream&, Shape, Storage, Region = Lifetime::scratch, Category = Category::temporaries);
/// The same, filled with zero bytes: all values are 0.
Stored zero_stored(Stream&, Shape, Storage, Region = Lifetime::scratch, Category = Category::temporaries);

/// The same values under another shape with as many; in one row.
Stored reshaped(const Stored&, Shape);
Stored flat(const Stored&);

}  // namespace octet
