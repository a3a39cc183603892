#ifndef ESDP_TESTS_SOCKETS_RAW_STREAM_H_
#define ESDP_TESTS_SOCKETS_RAW_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A TCP peer that says what a test wants it to say, and the bytes that an honest peer of qpip would
// say. It shares no code with the library.

namespace esdp::contract {

using Octets = std::vector<uint8_t>;

Octets FromHex(const std::string& hex);
Octets Garbage(uint64_t seed, size_t size);
void Put(Octets& bytes, size_t at, uint64_t value, size_t size);  // big-endian

// The SDP Hello of an honest peer: 92 bytes.
Octets HonestHello();
// The HelloAck of one: 196 bytes.
Octets HonestHelloAck();
// An SDP message with this header, and a length that is the truth.
Octets SdpMessage(uint8_t mid, uint32_t sequence, const Octets& rest = {});
// MPA start-up frames, revision 2, no checksum, four bytes of depths before the private data. The
// request's and the reply's key.
Octets MpaRequest(const Octets& private_data);
Octets MpaReply(const Octets& private_data);
// A framed RDMAP Send that is the `sequence`th of its stream, from 1.
Octets SendFrame(const Octets& message, uint32_t sequence);

// Moves the library under test while the peer waits.
using PumpUntil = std::function<bool(const std::function<bool()>& done)>;

class RawStream {
 public:
  explicit RawStream(PumpUntil pump) : pump_(std::move(pump)) {}
  ~RawStream() { Close(); }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  bool Connect(uint16_t port);
  // Listens on loopback; the port.
  uint16_t Listen();
  bool Accept();

  void Write(const Octets& bytes);
  // At least `size` bytes have come, or the stream has ended; all that came.
  const Octets& Read(size_t size);
  // The other side has ended the stream, in order or not.
  bool WaitForEnd();
  bool ended() const { return ended_; }
  const Octets& taken() const { return taken_; }  // all that was read
  uint16_t port() const;                          // its own, while it is open
  void EndWrites();
  // From now on nothing that comes is heard, not even by the system: no acknowledgement leaves and
  // no keep-alive probe is answered, as if the network had gone.
  void FallSilent();
  void Close();
  void Reset();

 private:
  void Take();

  PumpUntil pump_;
  int listener_ = -1;
  int socket_ = -1;
  Octets taken_;
  bool ended_ = false;
};

}  // namespace esdp::contract

#endif  // ESDP_TESTS_SOCKETS_RAW_STREAM_H_
