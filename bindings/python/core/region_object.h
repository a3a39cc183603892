#ifndef ESDP_BINDINGS_PYTHON_CORE_REGION_OBJECT_H_
#define ESDP_BINDINGS_PYTHON_CORE_REGION_OBJECT_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "bindings/python/core/collected.h"
#include "esdp/region.h"

namespace esdp::python {

class ContextObject;

// Memory of a Python object, held by a memoryview: while it lives, a bytearray does not change its
// size, an mmap does not close and an array is not freed.
struct HeldMemory {
  pybind11::object view;
  std::byte* base = nullptr;
  size_t length = 0;
  bool writable = false;

  // BufferError when the memory is not in one piece, TypeError when the object has none.
  static HeldMemory Of(pybind11::handle exporter);
  absl::Span<std::byte> span() const { return {base, length}; }
};

// esdp.Region: a registration, and the hold on the memory behind it.
//
//   Owns:     both. The memory is let go when the region is closed, its last view and its last
//             operation are gone.
//   Threads:  with the interpreter lock held.
//   Blocks:   Close with a timeout, without the lock.
//   Units:    bytes; seconds.
//   Errors:   exceptions.
class RegionObject : public std::enable_shared_from_this<RegionObject> {
 public:
  RegionObject(std::shared_ptr<ContextObject> context, Region region, HeldMemory memory);
  ~RegionObject();
  RegionObject(const RegionObject&) = delete;
  RegionObject& operator=(const RegionObject&) = delete;

  Region& handle() { return region_; }
  RegionInfo Info() const { return region_.info(); }
  bool writable() const { return memory_.writable; }
  size_t length() const { return memory_.length; }
  std::byte* base() const { return memory_.base; }
  bool closed() const { return closed_; }

  // Nothing when it is closed already. Without a timeout: an operation that uses it is an error.
  void Close(std::optional<double> timeout);
  // Its Context has ended, and the registration with it.
  void OnContextClosed();

  void CountView(int change);

  // For the collector of cycles. What operations use stays as it is until the queue has ended them.
  int Visit(const Visitor& visit) const { return visit(memory_.view); }
  void Finalize() noexcept;
  void Clear() noexcept { Finalize(); }

 private:
  void LetGoIfUnused();

  std::shared_ptr<ContextObject> context_;
  Region region_;
  HeldMemory memory_;
  int views_ = 0;
  bool closed_ = false;
};

// esdp.Slice: a range of a region, which it keeps alive: as an object of Python, so that the
// collector finds the region behind it.
struct SliceObject {
  pybind11::object owner;  // the esdp.Region
  RegionObject* region;
  Slice slice;

  // It is never cleared: a cycle that leads here goes on through the region.
  int Visit(const Visitor& visit) const { return visit(owner); }
};

SliceObject SliceOf(pybind11::object owner, uint64_t offset, uint64_t length);

// What an operation names: a range of registered memory, or memory to be copied.
struct Named {
  pybind11::object keep;  // holds the memory until the terminal event
  bool registered = false;
  Slice slice;
  HeldMemory memory;

  static Named ToSend(pybind11::handle data);
  // TypeError for bytes and for whatever cannot be written.
  static Named ToReceive(pybind11::handle target);
};

// The slices of a list, and the list itself, which keeps their regions.
struct NamedList {
  std::vector<Slice> slices;
  pybind11::list keep;

  // `name`: Named::ToSend or ToReceive. TypeError for what is not registered.
  static NamedList Of(const pybind11::sequence& list, Named (*name)(pybind11::handle));
};

void DefineRegion(pybind11::module_& module);

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_REGION_OBJECT_H_
