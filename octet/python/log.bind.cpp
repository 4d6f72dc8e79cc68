#include "octet/base/log.hpp"
#include "octet/python/bind.hpp"

namespace octet::python {
namespace {

// logging.getLogger("octet"). A thread of Octet may still have a line when Python has ended.
void to_logger(log::Level level, std::string_view line) {
  if (Py_IsInitialized() == 0) return;
  const nanobind::gil_scoped_acquire locked;
  try {
    const nanobind::object logger = nanobind::module_::import_("logging").attr("getLogger")("octet");
    const nanobind::str text(line.data(), line.size());
    logger.attr(level == log::Level::warning ? "warning" : "info")("%s", text);
  } catch (nanobind::python_error& e) {
    e.discard_as_unraisable("octet: a line of the log");
  }
}

}  // namespace

void bind_log(nanobind::module_&) { log::set_sink(to_logger); }

}  // namespace octet::python
