#include "bindings/python/core/file_arguments.h"

#include <cstdint>
#include <string>

#include "bindings/python/core/errors.h"

namespace py = pybind11;

namespace esdp::python {
namespace {

uint64_t NumberFrom(py::handle value, const char* what) {
  const auto number = Cast<int64_t>(value, what);
  if (number < 0) RaiseValueError(std::string(what) + ", not " + std::to_string(number));
  return static_cast<uint64_t>(number);
}

FileRange RangeFrom(py::handle item) {
  if (!py::isinstance<py::tuple>(item) || py::len(item) != 3) {
    RaiseTypeError("a part of a file is a tuple (file, offset, length)");
  }
  const auto parts = py::reinterpret_borrow<py::tuple>(item);
  FileRange range;
  range.fd = PyObject_AsFileDescriptor(py::object(parts[0]).ptr());
  if (range.fd < 0) throw py::error_already_set();
  range.offset = NumberFrom(parts[1], "an offset is an int from 0 to 2^63 - 1");
  range.length = NumberFrom(parts[2], "a length is an int from 0 to 2^63 - 1");
  return range;
}

}  // namespace

SendFileArguments::SendFileArguments(const py::sequence& parts, const py::sequence& before,
                                     const py::sequence& behind)
    : header(NamedList::Of(before, Named::ToSend)), trailer(NamedList::Of(behind, Named::ToSend)) {
  for (const py::handle item : parts) {
    ranges.push_back(RangeFrom(item));
    keep.append(item);
  }
  keep.append(header.keep);
  keep.append(trailer.keep);
}

ReceiveFileArguments::ReceiveFileArguments(py::handle target)
    : keep(py::reinterpret_borrow<py::object>(target)) {
  const FileRange range = RangeFrom(target);
  sink.fd = range.fd;
  sink.offset = range.offset;
  sink.length = range.length;
}

}  // namespace esdp::python
