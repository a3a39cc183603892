#ifndef ESDP_BINDINGS_PYTHON_CORE_FILE_ARGUMENTS_H_
#define ESDP_BINDINGS_PYTHON_CORE_FILE_ARGUMENTS_H_

#include <pybind11/pybind11.h>

#include <string_view>
#include <vector>

#include "bindings/python/core/region_object.h"
#include "esdp/file.h"

namespace esdp::python {

// What Socket.send_file takes, and the objects that own it.
//
//   Owns:     its lists; `keep` holds the files and regions.
//   Threads:  with the interpreter lock held.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   TypeError, ValueError.
struct SendFileArguments {
  NamedList header, trailer;
  std::vector<FileRange> ranges;
  FileStrategy strategy = FileStrategy::kPipelined;
  OnShortFile on_short = OnShortFile::kAbort;
  bool drop_behind = false;
  pybind11::list keep;

  // `ranges`: tuples (file, offset, length). A file is a number, or an object with fileno().
  SendFileArguments(const pybind11::sequence& ranges, const pybind11::sequence& header,
                    const pybind11::sequence& trailer);
  FilePlan Plan() const {
    return {header.slices, ranges, trailer.slices, strategy, on_short, drop_behind};
  }
};

// The same of Socket.recv_file.
struct ReceiveFileArguments {
  FileSink sink;
  pybind11::object keep;

  // `target`: one such tuple.
  explicit ReceiveFileArguments(pybind11::handle target);
};

}  // namespace esdp::python

#endif  // ESDP_BINDINGS_PYTHON_CORE_FILE_ARGUMENTS_H_
