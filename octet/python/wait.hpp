#pragma once

#include <functional>

#include "octet/python/aside.hpp"

namespace octet::python {

/// Runs `work` aside and waits for it without the GIL. If a signal handler of Python raises meanwhile, such as that of Ctrl-C, work that
/// asks train::stop_requested() stops and saves; the handler's exception follows when it is done.
void wait_for(Aside&, const std::function<void()>& work);
/// The same in a thread that is made for it.
void wait_for(const std::function<void()>& work);

}  // namespace octet::python
