#include "octet/tensor/dtype.hpp"

namespace octet {

void unsupported_dtype(std::string_view op, DType got, std::initializer_list<DType> supported) {
  std::string list;
  for (const DType t : supported) list += (list.empty() ? "" : ", ") + to_text(t);
  throw ContractError(format("{}: dtype {} is not supported; supported: {}", op, name(got), list));
}

}  // namespace octet
