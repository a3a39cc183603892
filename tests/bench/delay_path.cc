// Two network namespaces and a path between them on which every packet takes a fixed time, each
// way: what a long line is to TCP, without one. Root only.
//
//   delay_path MICROSECONDS
//
// It prints "namespaces PATH PATH": files to give to `nsenter --net=`. The first one's address is
// 10.9.0.1, the second one's 10.9.0.2. All of it is gone when the program ends, by SIGTERM or with
// whoever started it: namespaces and devices have no other owner.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPacketMax =
    65520;  // as large as IP has them: a system call for each costs the least
constexpr int kQueuePackets = 10000;  // so that a burst waits in the device and is not lost
constexpr int kTakeMost = 64;         // packets of one side before it is the other's turn

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "delay_path: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

// A network namespace with one device, whose packets this program reads and writes.
struct End {
  int name_space = -1;
  int device = -1;
};

int OpenDevice(ifreq& request) {
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) Fail("/dev/net/tun");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device, TUNSETIFF, &request) != 0) Fail("TUNSETIFF");
  return device;
}

void SetAddress(int control, ifreq request, unsigned long what, const char* text) {
  auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  *address = {};
  address->sin_family = AF_INET;
  inet_pton(AF_INET, text, &address->sin_addr);
  if (ioctl(control, what, &request) != 0) Fail(text);
}

void SetUp(int control, ifreq request, const char* address) {
  request.ifr_mtu = kPacketMax;
  if (ioctl(control, SIOCSIFMTU, &request) != 0) Fail("MTU");
  request.ifr_qlen = kQueuePackets;
  if (ioctl(control, SIOCSIFTXQLEN, &request) != 0) Fail("transmit queue");
  SetAddress(control, request, SIOCSIFADDR, address);
  SetAddress(control, request, SIOCSIFNETMASK, "255.255.255.0");
  request.ifr_flags = IFF_UP;
  if (ioctl(control, SIOCSIFFLAGS, &request) != 0) Fail("up");
}

// The calling thread is in the new namespace afterwards.
End MakeEnd(const char* address) {
  End end;
  if (unshare(CLONE_NEWNET) != 0) Fail("a network namespace");
  end.name_space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (end.name_space < 0 || control < 0) Fail("a network namespace");
  ifreq request{};
  std::strcpy(request.ifr_name, "path");
  end.device = OpenDevice(request);
  SetUp(control, request, address);
  close(control);
  return end;
}

// What is under way from one device to the other, in order.
class Direction {
 public:
  Direction(int from, int to, Clock::duration delay) : from_(from), to_(to), delay_(delay) {}

  // True if packets were taken.
  bool Take() {
    bool took = false;
    for (int i = 0; i < kTakeMost; ++i) {
      std::vector<char> bytes = Blank();
      const ssize_t length = read(from_, bytes.data(), bytes.size());
      if (length <= 0) {
        if (length < 0 && errno != EAGAIN && errno != EINTR) Fail("read");
        blanks_.push_back(std::move(bytes));
        break;
      }
      under_way_.push_back({Clock::now() + delay_, static_cast<size_t>(length), std::move(bytes)});
      took = true;
    }
    return took;
  }

  // Hands on what has come to its end.
  void Give() {
    while (!under_way_.empty() && under_way_.front().due <= Clock::now()) {
      Packet& packet = under_way_.front();
      if (write(to_, packet.bytes.data(), packet.length) < 0 && errno == EAGAIN) return;
      blanks_.push_back(std::move(packet.bytes));
      under_way_.pop_front();
    }
  }

  Clock::time_point next() const {
    return under_way_.empty() ? Clock::time_point::max() : under_way_.front().due;
  }

 private:
  struct Packet {
    Clock::time_point due;
    size_t length;
    std::vector<char> bytes;
  };

  std::vector<char> Blank() {
    if (blanks_.empty()) return std::vector<char>(kPacketMax);
    std::vector<char> bytes = std::move(blanks_.back());
    blanks_.pop_back();
    return bytes;
  }

  const int from_, to_;
  const Clock::duration delay_;
  std::deque<Packet> under_way_;
  std::vector<std::vector<char>> blanks_;  // memory of packets that are gone
};

void Sleep(const std::array<End, 2>& ends, Clock::time_point until) {
  std::array<pollfd, 2> looks = {{{ends[0].device, POLLIN, 0}, {ends[1].device, POLLIN, 0}}};
  if (until == Clock::time_point::max()) {
    poll(looks.data(), looks.size(), -1);
    return;
  }
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
  if (left.count() <= 0) return;
  const timespec time = {left.count() / 1000000000, left.count() % 1000000000};
  ppoll(looks.data(), looks.size(), &time, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const long delay = argc == 2 ? std::atol(argv[1]) : -1;
  if (delay < 0) return std::fputs("usage: delay_path MICROSECONDS\n", stderr), 2;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const std::array<End, 2> ends = {MakeEnd("10.9.0.1"), MakeEnd("10.9.0.2")};
  std::printf("namespaces /proc/%d/fd/%d /proc/%d/fd/%d\n", getpid(), ends[0].name_space, getpid(),
              ends[1].name_space);
  std::fflush(stdout);
  Direction there(ends[0].device, ends[1].device, std::chrono::microseconds(delay));
  Direction back(ends[1].device, ends[0].device, std::chrono::microseconds(delay));
  for (;;) {
    const bool took_there = there.Take();
    there.Give();
    const bool took_back = back.Take();
    back.Give();
    if (!took_there && !took_back) Sleep(ends, std::min(there.next(), back.next()));
  }
}
