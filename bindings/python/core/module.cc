#include <pybind11/pybind11.h>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/event_object.h"
#include "bindings/python/core/queue_object.h"
#include "bindings/python/core/region_object.h"
#include "bindings/python/core/signatures.h"
#include "bindings/python/core/socket_object.h"
#include "bindings/python/core/stats_type.h"
#include "bindings/python/core/stream_object.h"

// The module esdp._core; the package esdp gives its names to users.

namespace esdp::python {
namespace {

void Define(pybind11::module_& module) {
  module.doc() = "The classes of esdp. Use the package esdp.";
  DefineStats(module);
  DefineEvent(module);
  DefineRegion(module);
  DefineQueue(module);
  DefineSocket(module);
  DefineContext(module);
  DefineStream(module);
  module.def("_set_exception_maker", &SetExceptionMaker);
  module.def("_close_all", &ContextObject::CloseAll);
  GiveSignatures(module);
}

}  // namespace
}  // namespace esdp::python

PYBIND11_MODULE(_core, module) { esdp::python::Define(module); }
