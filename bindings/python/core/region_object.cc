#include "bindings/python/core/region_object.h"

#include <cerrno>
#include <string>
#include <utility>

#include "bindings/python/core/context_object.h"
#include "bindings/python/core/errors.h"
#include "bindings/python/core/names.h"
#include "bindings/python/core/unlocked.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

[[noreturn]] void RefuseTarget(py::handle target) {
  if (PyBytes_Check(target.ptr())) {
    RaiseTypeError(
        "bytes never change, so nothing can be received into them: receive into a Region, a "
        "bytearray, a writable mmap or a NumPy array");
  }
  RaiseTypeError("the memory of this " +
                 py::str(py::type::of(target).attr("__name__")).cast<std::string>() +
                 " is read-only and can only be sent from: receive into writable memory");
}

}  // namespace

HeldMemory HeldMemory::Of(py::handle exporter) {
  HeldMemory memory;
  memory.view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(exporter.ptr()));
  if (!memory.view) throw py::error_already_set();
  const Py_buffer* const buffer = PyMemoryView_GET_BUFFER(memory.view.ptr());
  if (PyBuffer_IsContiguous(buffer, 'A') == 0) {
    throw py::buffer_error(
        "the memory is not in one piece: pass a contiguous copy (numpy.ascontiguousarray)");
  }
  memory.base = static_cast<std::byte*>(buffer->buf);
  memory.length = static_cast<size_t>(buffer->len);
  memory.writable = buffer->readonly == 0;
  return memory;
}

RegionObject::RegionObject(std::shared_ptr<ContextObject> context, Region region, HeldMemory memory)
    : context_(std::move(context)), region_(std::move(region)), memory_(std::move(memory)) {}

// No operation uses it: each holds it until its terminal event.
RegionObject::~RegionObject() { Finalize(); }

void RegionObject::Finalize() noexcept {
  if (closed_ || Info().operations > 0) return;
  (void)region_.Close();
  closed_ = true;
  if (!context_->closed()) WarnUnclosed("Region of " + std::to_string(length()) + " bytes");
  LetGoIfUnused();
}

void RegionObject::Close(std::optional<double> timeout) {
  if (closed_) return;
  if (timeout.has_value()) {
    const absl::Time deadline = DeadlineAfter(context_->handle().Now(), timeout);
    absl::Status done;
    {
      const Unlocked unlocked;
      done = region_.Close(deadline);
    }
    Check(done);
  } else {
    Check(region_.Close());
  }
  OnContextClosed();
}

void RegionObject::OnContextClosed() {
  closed_ = true;
  LetGoIfUnused();
}

void RegionObject::CountView(int change) {
  views_ += change;
  LetGoIfUnused();
}

// Memory that belongs to the region itself lives as long as the handle does.
void RegionObject::LetGoIfUnused() {
  if (closed_ && views_ == 0) memory_.view = py::object();
}

SliceObject SliceOf(py::object owner, uint64_t offset, uint64_t length) {
  auto& region = owner.cast<RegionObject&>();
  return {std::move(owner), &region, Value(region.handle().slice(offset, length))};
}

Named Named::ToSend(py::handle data) {
  Named named;
  if (py::isinstance<SliceObject>(data)) {
    named.registered = true;
    named.slice = data.cast<SliceObject&>().slice;
    named.keep = py::reinterpret_borrow<py::object>(data);
  } else if (py::isinstance<RegionObject>(data)) {
    named.registered = true;
    named.slice = data.cast<RegionObject&>().handle().slice();
    named.keep = py::reinterpret_borrow<py::object>(data);
  } else {
    named.memory = HeldMemory::Of(data);
  }
  return named;
}

Named Named::ToReceive(py::handle target) {
  Named named = ToSend(target);
  if (!named.registered) {
    if (!named.memory.writable) RefuseTarget(target);
    named.keep = named.memory.view;
    return named;
  }
  const bool writable = py::isinstance<SliceObject>(target)
                            ? target.cast<SliceObject&>().region->writable()
                            : target.cast<RegionObject&>().writable();
  if (!writable) RefuseTarget(target);
  return named;
}

NamedList NamedList::Of(const py::sequence& list, Named (*name)(py::handle)) {
  NamedList named;
  for (const py::handle item : list) {
    Named one = name(item);
    if (!one.registered) RaiseTypeError("a list names registered memory: regions and slices");
    named.slices.push_back(one.slice);
    named.keep.append(std::move(one.keep));
  }
  return named;
}

}  // namespace esdp::python
