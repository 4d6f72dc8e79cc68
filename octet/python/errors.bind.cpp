#include <new>

#include "octet/base/error.hpp"
#include "octet/python/bind.hpp"

namespace octet::python {
namespace {

// The classes of octet/_errors.py.
const char* class_of(ExitCode code) {
  switch (code) {
    case ExitCode::usage: return "ConfigError";
    case ExitCode::data: return "DataError";
    case ExitCode::device: return "DeviceError";
    case ExitCode::internal: return "ContractError";
    case ExitCode::io: return "IoError";
    case ExitCode::interrupted: return "Interrupted";
    case ExitCode::ranks: return "RanksError";
    case ExitCode::diverged: return "DivergedError";
    case ExitCode::done:
    case ExitCode::gap: break;
  }
  return "Error";
}

void raise(const char* name, const char* what) {
  const nanobind::object type = nanobind::module_::import_("octet._errors").attr(name);
  PyErr_SetString(type.ptr(), what);
}

}  // namespace

void bind_errors() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& e) {
      raise(class_of(e.code()), e.what());
    } catch (const std::bad_alloc&) {
      raise("DeviceError", "out of memory: use a smaller batch or a smaller model");
    }
  });
}

}  // namespace octet::python
