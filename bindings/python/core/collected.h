#ifndef ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_
#define ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_

#include <pybind11/pybind11.h>

#include <concepts>
#include <memory>

// Types whose objects hold Python objects take part in the collection of reference cycles: an
// operation's cookie may refer to the queue that holds it.
//
// The collector first finalizes all that nobody reaches, then clears it, in no order. Memory may be
// lent to operations, and a memoryview that is cleared lets its memory go; so whatever has
// operations ends them when it is finalized.
//
//   Owns:     -
//   Threads:  with the interpreter lock held.
//   Blocks:   as the object's Finalize.
//   Units:    -
//   Errors:   -

namespace esdp::python {

// What the collector asks for the references of an object.
class Visitor {
 public:
  Visitor(visitproc visit, void* argument) : visit_(visit), argument_(argument) {}

  // Not 0 ends the visit.
  int operator()(pybind11::handle object) const {
    return object ? visit_(object.ptr(), argument_) : 0;
  }

 private:
  visitproc visit_;
  void* argument_;
};

template <typename T>
concept Finalized = requires(T& object) {
  { object.Finalize() }
  noexcept;
};

template <typename T>
concept Cleared = requires(T& object) {
  { object.Clear() }
  noexcept;
};

template <typename T>
concept Shared = requires(T& object) {
  object.shared_from_this();
};

// The object behind a Python one, when that is all that holds it: then what it refers to is reached
// through this one alone. Nothing where it is not made yet, since the collector may come before.
template <typename T>
T* OnlyHeldBy(PyObject* self) {
  auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self);
  if (!instance->simple_layout || !instance->simple_holder_constructed) return nullptr;
  auto held = instance->get_value_and_holder();
  if constexpr (Shared<T>) {
    if (held.template holder<std::shared_ptr<T>>().use_count() != 1) return nullptr;
  }
  return static_cast<T*>(held.value_ptr());
}

template <typename T>
int TraverseObject(PyObject* self, visitproc visit, void* argument) {
  const Visitor visitor(visit, argument);
  if (const int end = visitor(reinterpret_cast<PyObject*>(Py_TYPE(self))); end != 0) return end;
  const T* const object = OnlyHeldBy<T>(self);
  return object != nullptr ? object->Visit(visitor) : 0;
}

template <typename T>
void FinalizeObject(PyObject* self) {
  if (T* const object = OnlyHeldBy<T>(self)) object->Finalize();
}

template <typename T>
int ClearObject(PyObject* self) {
  if (T* const object = OnlyHeldBy<T>(self)) object->Clear();
  return 0;
}

// Its end may let the interpreter lock go, and the collector must not find it then.
inline void DeallocateObject(PyObject* self) {
  PyObject_GC_UnTrack(self);
  pybind11::detail::pybind11_object_dealloc(self);
}

// For pybind11::custom_type_setup. T has `int Visit(const Visitor&) const`, and where it can let go
// of what it refers to, Clear; where it must end something before anything is cleared, Finalize.
template <typename T>
void TakePartInCollection(PyHeapTypeObject* type) {
  PyTypeObject& slots = type->ht_type;
  slots.tp_flags |= Py_TPFLAGS_HAVE_GC;
  slots.tp_traverse = &TraverseObject<T>;
  slots.tp_dealloc = &DeallocateObject;
  if constexpr (Finalized<T>) slots.tp_finalize = &FinalizeObject<T>;
  if constexpr (Cleared<T>) slots.tp_clear = &ClearObject<T>;
}

template <typename T>
pybind11::custom_type_setup Collected() {
  return pybind11::custom_type_setup(&TakePartInCollection<T>);
}

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_COLLECTED_H_
