#ifndef ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_
#define ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_

#include <pybind11/pybind11.h>

#include <utility>
#include <vector>

namespace esdp::python {

// Lets Python's collector of cycles see through a class: T::ForEachObject(visit) shows each
// py::object that an instance holds and that may be let go of with it. What the library may still
// use, such as the memory of an operation, is not shown: a cycle through that is not collected.
//
//   Owns:     nothing.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    -
//   Errors:   none: an instance that is not yet made holds nothing.
template <typename T>
class Collected {
 public:
  static pybind11::custom_type_setup Setup() {
    return pybind11::custom_type_setup([](PyHeapTypeObject* heap) {
      heap->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
      heap->ht_type.tp_traverse = Traverse;
      heap->ht_type.tp_clear = Clear;
    });
  }

 private:
  static T* ValueOf(PyObject* self) {
    auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self);
    auto held = instance->get_value_and_holder();
    return held.holder_constructed() ? held.template value_ptr<T>() : nullptr;
  }

  static int Traverse(PyObject* self, visitproc visit, void* argument) {
    int result = visit(reinterpret_cast<PyObject*>(Py_TYPE(self)), argument);
    if (T* const value = ValueOf(self)) {
      value->ForEachObject([&](pybind11::object& object) {
        if (result == 0 && object) result = visit(object.ptr(), argument);
      });
    }
    return result;
  }

  static int Clear(PyObject* self) {
    std::vector<pybind11::object> dropped;  // afterwards: what goes may call anything
    if (T* const value = ValueOf(self)) {
      value->ForEachObject([&](pybind11::object& object) {
        if (object) dropped.push_back(std::exchange(object, pybind11::none()));
      });
    }
    return 0;
  }
};

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_
