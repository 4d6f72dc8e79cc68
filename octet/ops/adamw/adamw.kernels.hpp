#pragma once

#include "octet/ops/adamw/adamw.hpp"
#include "octet/tensor/backend.hpp"

OCTET_KERNEL(adamw, const ops::AdamW&)
