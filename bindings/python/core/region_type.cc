#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/region_object.h"

// Region and Slice as Python sees them, with the buffer protocol.

namespace py = pybind11;

namespace esdp::python {
namespace {

// The slots of the buffer protocol are C: an exception must not cross them.
template <typename Fill>
int Guarded(Py_buffer* view, Fill fill) {
  if (view == nullptr) {
    PyErr_SetString(PyExc_BufferError, "there is no view to fill");
    return -1;
  }
  view->obj = nullptr;
  try {
    return fill();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

int FillView(Py_buffer* view, RegionObject& region, py::handle owner, uint64_t offset,
             uint64_t length, int flags) {
  if (region.closed()) {
    PyErr_SetString(PyExc_ValueError, "the region has been closed");
    return -1;
  }
  if (region.base() == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a dma-buf is the device's to read: it has no view");
    return -1;
  }
  const int done = PyBuffer_FillInfo(view, owner.ptr(), region.base() + offset,
                                     static_cast<Py_ssize_t>(length), !region.writable(), flags);
  if (done == 0) region.CountView(1);
  return done;
}

int GetRegionView(PyObject* self, Py_buffer* view, int flags) {
  return Guarded(view, [&] {
    auto& region = py::handle(self).cast<RegionObject&>();
    return FillView(view, region, self, 0, region.length(), flags);
  });
}

// The view's owner is the region, so that its end is counted there.
int GetSliceView(PyObject* self, Py_buffer* view, int flags) {
  return Guarded(view, [&] {
    const auto& slice = py::handle(self).cast<SliceObject&>();
    return FillView(view, *slice.region, slice.owner, slice.slice.offset(), slice.slice.length(),
                    flags);
  });
}

void ReleaseView(PyObject* self, Py_buffer*) {
  py::handle(self).cast<RegionObject&>().CountView(-1);
}

template <typename T>
py::custom_type_setup Slots(getbufferproc get, releasebufferproc release) {
  return py::custom_type_setup([=](PyHeapTypeObject* type) {
    TakePartInCollection<T>(type);
    type->as_buffer.bf_getbuffer = get;
    type->as_buffer.bf_releasebuffer = release;
    type->ht_type.tp_as_buffer = &type->as_buffer;
  });
}

// [start:stop] of what is `length` bytes long and begins at `offset` in its region.
SliceObject Part(py::object region, uint64_t offset, uint64_t length, const py::slice& range) {
  size_t start = 0, stop = 0, step = 0, count = 0;
  if (!range.compute(length, &start, &stop, &step, &count)) throw py::error_already_set();
  if (step != 1) RaiseValueError("a range of a region has no step");
  return SliceOf(std::move(region), offset + start, count);
}

std::string DescribeRegion(const RegionObject& region) {
  return "<esdp.Region " + std::to_string(region.length()) + " bytes" +
         (region.writable() ? "" : ", read-only") + (region.closed() ? ", closed>" : ">");
}

py::dict InfoOf(const RegionObject& region) {
  const RegionInfo info = region.Info();
  py::dict out;
  out["length"] = info.length;
  out["chunks"] = info.chunks;
  out["operations"] = info.operations;
  out["exposure"] = WordOf(info.exposure);
  out["local_write"] = info.local_write;
  out["registration_time"] = absl::ToDoubleSeconds(info.registration_time);
  return out;
}

py::object ViewOf(const py::object& self) {
  return py::reinterpret_steal<py::object>(PyMemoryView_FromObject(self.ptr()));
}

// With an error on its way the region may be left with operations: it is let go with the last one.
void ExitRegion(RegionObject& self, const py::object& type, const py::object&, const py::object&) {
  if (type.is_none() || self.Info().operations == 0) self.Close(std::nullopt);
}

void DefineSlice(py::module_& module) {
  py::class_<SliceObject>(module, "Slice", Slots<SliceObject>(GetSliceView, nullptr),
                          "A range of a Region, checked when it was made. A view of its bytes is "
                          "memoryview(slice).")
      .def("__len__", [](const SliceObject& self) { return self.slice.length(); })
      .def("__getitem__",
           [](const SliceObject& self, const py::slice& range) {
             return Part(self.owner, self.slice.offset(), self.slice.length(), range);
           })
      .def("view", &ViewOf, "Its bytes: memoryview(slice).")
      .def("__repr__",
           [](const SliceObject& self) {
             return "<esdp.Slice [" + std::to_string(self.slice.offset()) + ":" +
                    std::to_string(self.slice.offset() + self.slice.length()) + "]>";
           })
      .def_property_readonly(
          "region", [](const SliceObject& self) { return self.owner; },
          "The region that it is a range of.")
      .def_property_readonly(
          "offset", [](const SliceObject& self) { return self.slice.offset(); },
          "Of its first byte, from the start of the region.");
}

}  // namespace

void DefineRegion(py::module_& module) {
  py::class_<RegionObject, std::shared_ptr<RegionObject>>(
      module, "Region", Slots<RegionObject>(GetRegionView, ReleaseView),
      "Registered memory, from Context.register or Context.allocate.\n\n"
      "region[a:b] names a range of it for an operation; memoryview(region) shows its bytes. The "
      "object that gave the memory cannot resize or free it (BufferError) until the region is "
      "closed and the last view and operation are gone.")
      .def("__len__", &RegionObject::length)
      .def("__getitem__",
           [](const py::object& self, const py::slice& range) {
             return Part(self, 0, self.cast<RegionObject&>().length(), range);
           })
      .def("view", &ViewOf, "Its bytes: memoryview(region).")
      .def("__repr__", &DescribeRegion)
      .def_property_readonly("closed", &RegionObject::closed, "Whether it has been deregistered.")
      .def_property_readonly("writable", &RegionObject::writable,
                             "Whether it can be received into.")
      .def_property_readonly("info", &InfoOf,
                             "length, chunks, operations outstanding, exposure, local_write, "
                             "registration_time in seconds.")
      .def("close", &RegionObject::Close, py::arg("timeout") = py::none(),
           "Deregisters. BusyError while operations use it, and nothing has changed; with a "
           "timeout it waits for them.")
      .def("__enter__", [](const std::shared_ptr<RegionObject>& self) { return self; })
      .def("__exit__", &ExitRegion);
  DefineSlice(module);
}

}  // namespace esdp::python
