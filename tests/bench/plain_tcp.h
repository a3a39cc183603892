#ifndef ESDP_TESTS_BENCH_PLAIN_TCP_H_
#define ESDP_TESTS_BENCH_PLAIN_TCP_H_

// What the programs that esdp is held against do before they measure: plain TCP over loopback. Each
// call ends the program with a message when the system refuses.

namespace esdp_bench {

[[noreturn]] void Fail(const char* what);  // with the text of errno
void PinTo(const char* cpu);
// Listens, prints "port N" and takes one connection.
int AcceptOne();
int ConnectTo(int port, const char* congestion);
void SendImmediate(int fd);  // TCP_NODELAY

}  // namespace esdp_bench

#endif  // ESDP_TESTS_BENCH_PLAIN_TCP_H_
