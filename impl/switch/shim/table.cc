#include "impl/switch/shim/table.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "impl/switch/taken_numbers.h"
#include "impl/switch/taker.h"

namespace esdp::switching {
namespace {

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit sigset_t signals_of_holder = {};  // of the thread that forks

// Pages that are not touched cost nothing.
template <typename T>
T* Reserve(size_t count) {
  void* const room = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room == MAP_FAILED ? nullptr : static_cast<T*>(room);
}

}  // namespace

constinit Table table;

bool Table::Open() {
  places_ = Reserve<std::atomic<uint32_t>>(kNumbers);
  connections_ = Reserve<Connection>(kConnections);
  return places_ != nullptr && connections_ != nullptr;
}

Connection* Table::Find(int number) const {
  if (static_cast<unsigned>(number) >= kNumbers) return nullptr;
  const uint32_t place = places_[number].load(std::memory_order_acquire);
  return place == 0 ? nullptr : &connections_[place];
}

Connection* Table::FindRelay(uint64_t id) const {
  for (uint32_t place = 1; place < used_; ++place) {
    Connection& each = connections_[place];
    if (each.numbers > 0 && IsSwitched(each.state) && each.relay == id) return &each;
  }
  return nullptr;
}

Connection* Table::Insert(int number, State state) {
  if (static_cast<unsigned>(number) >= kNumbers) return nullptr;
  uint32_t place = free_;
  if (place != 0) {
    free_ = connections_[place].next;
  } else if (used_ < kConnections) {
    place = used_++;
  } else {
    return nullptr;
  }
  const uint32_t use = connections_[place].waits.use() + 1;
  Connection* const made = new (&connections_[place]) Connection(use);
  made->state = state;
  made->number = number;
  made->numbers = 1;
  Set(number, place);
  return made;
}

void Table::AddNumber(int number, Connection& connection) {
  if (static_cast<unsigned>(number) >= kNumbers) return;
  ++connection.numbers;
  Set(number, PlaceOf(connection));
}

void Table::Set(int number, uint32_t place) {
  highest_ = std::max(highest_, number);
  places_[number].store(place, std::memory_order_release);
  libc::taken_numbers.Add(number);
}

void Table::Remove(int number, void (*last)(Connection&)) {
  Connection* const connection = Find(number);
  libc::taken_numbers.Remove(number);
  if (connection == nullptr) return;
  places_[number].store(0, std::memory_order_release);
  {
    const Registrations::Hold hold(connection->registrations, Registrations::Hold::Waits::kYes);
    connection->registrations.Forget(number);
  }
  if (--connection->numbers > 0) {
    if (connection->number != number) return;
    for (int other = 0; other <= highest_; ++other) {
      if (Find(other) == connection) connection->number = other;
    }
    return;
  }
  last(*connection);
  connection->next = free_;
  free_ = PlaceOf(*connection);
}

TableLock::TableLock() { pthread_mutex_lock(&mutex); }

TableLock::~TableLock() { pthread_mutex_unlock(&mutex); }

void TableLock::Hold() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&mutex);
  signals_of_holder = before;
}

void TableLock::LetGo() {
  const sigset_t before = signals_of_holder;
  pthread_mutex_unlock(&mutex);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace esdp::switching
