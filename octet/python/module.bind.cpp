#include "octet/python/bind.hpp"

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of octet. Use the functions of octet itself.";
  nanobind::set_leak_warnings(false);  // models of a script may live until its end
  m.attr("version") = OCTET_VERSION;
  octet::python::bind_errors();
  octet::python::bind_log(m);
  octet::python::bind_training(m);
  octet::python::bind_comparisons(m);
  octet::python::bind_plans(m);
  octet::python::bind_text(m);
  octet::python::bind_models(m);
  octet::python::bind_formats(m);
  octet::python::bind_linear(m);
}
