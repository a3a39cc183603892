#ifndef ESDP_IMPL_SWITCH_MPA_REQUEST_H_
#define ESDP_IMPL_SWITCH_MPA_REQUEST_H_

#include <cstddef>

namespace esdp::libc {

// A request of MPA (RFC 5044), by which a peer says that it speaks SDP: a key of 16 bytes, flags, a
// revision, and the length of the private data that follow.
inline constexpr size_t kMpaHeaderBytes = 20;
inline constexpr size_t kMpaPrivateDataMax = 512;
inline constexpr size_t kMpaRequestMax = kMpaHeaderBytes + kMpaPrivateDataMax;
// How long the rest of one may take once a part of it is there.
inline constexpr unsigned kMpaRestWithinMs = 1000;

// What JudgeMpaRequest answers beside a number of bytes.
inline constexpr size_t kMpaWhole = 0;
inline constexpr size_t kMpaNone = ~size_t{0};

// Of the first bytes of a connection, at least one: how many have to be there to know more;
// kMpaWhole; or kMpaNone, as soon as one byte differs.
size_t JudgeMpaRequest(const unsigned char* bytes, size_t count);
// Of a whole request.
size_t MpaRequestBytes(const unsigned char* bytes);

}  // namespace esdp::libc

#endif  // ESDP_IMPL_SWITCH_MPA_REQUEST_H_
