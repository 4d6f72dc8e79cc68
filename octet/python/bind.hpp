#pragma once

#include <nanobind/nanobind.h>

namespace octet::python {

/// Each adds its part to the module octet._core, which octet/python/octet/ wraps.
void bind_log(nanobind::module_&);
void bind_errors();
void bind_training(nanobind::module_&);
void bind_comparisons(nanobind::module_&);
void bind_plans(nanobind::module_&);
void bind_text(nanobind::module_&);
void bind_models(nanobind::module_&);
void bind_formats(nanobind::module_&);
void bind_linear(nanobind::module_&);

}  // namespace octet::python
