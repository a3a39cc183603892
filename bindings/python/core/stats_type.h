#ifndef ESDP_BINDINGS_PYTHON_CORE_STATS_TYPE_H_
#define ESDP_BINDINGS_PYTHON_CORE_STATS_TYPE_H_

#include <pybind11/pybind11.h>

#include "esdp/stats.h"

namespace esdp::python {

// SocketStats, QueueStats and ContextStats, and Diagnostics: plain values to read.
void DefineStats(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_STATS_TYPE_H_
