#ifndef ESDP_IMPL_SWITCH_ENGINE_FAR_END_H_
#define ESDP_IMPL_SWITCH_ENGINE_FAR_END_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "impl/switch/engine/direct_stream.h"
#include "impl/switch/engine/program_end.h"
#include "impl/switch/engine/to_mark.h"

namespace esdp::switching {

// What is on the other side of a pump: the peer.
//
//   Owns:     nothing.
//   Threads:  the engine's.
//   Blocks:   never.
//   Units:    bytes.
//   Errors:   as ProgramEnd has them; kReset: the connection has failed.
class FarEnd {
 public:
  using Result = ProgramEnd::Result;

  FarEnd() = default;
  virtual ~FarEnd() = default;
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;

  virtual Result Read(void* to, size_t room, size_t& got, bool& urgent) = 0;
  virtual Result Write(const void* from, size_t bytes, size_t& done, bool urgent) = 0;
  virtual void EndOfOutput() = 0;
};

// A TCP socket that is its caller's.
class TcpEnd final : public FarEnd {
 public:
  explicit TcpEnd(int tcp) : tcp_(tcp) { KeepUrgentInLine(tcp); }

  Result Read(void* to, size_t room, size_t& got, bool& urgent) override;
  Result Write(const void* from, size_t bytes, size_t& done, bool urgent) override;
  void EndOfOutput() override;

 private:
  const int tcp_;
};

// A connection of SDP that went directly before.
class StreamEnd final : public FarEnd {
 public:
  explicit StreamEnd(std::shared_ptr<DirectStream> stream) : stream_(std::move(stream)) {}

  Result Read(void* to, size_t room, size_t& got, bool& urgent) override;
  Result Write(const void* from, size_t bytes, size_t& done, bool urgent) override;
  void EndOfOutput() override;

 private:
  const std::shared_ptr<DirectStream> stream_;
};

}  // namespace esdp::switching

#endif  // ESDP_IMPL_SWITCH_ENGINE_FAR_END_H_
