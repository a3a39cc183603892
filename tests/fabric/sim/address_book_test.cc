#include "impl/fabric/sim/address_book.h"

#include <set>

#include "gtest/gtest.h"

namespace esdp::fabric::sim {
namespace {

class Nobody : public ListenerOwner {
  void OnRequest(ListenerId, const std::shared_ptr<Handshake>&) override {}
  void OnWithdrawn(const std::shared_ptr<Handshake>&) override {}
};

Address At(Family family, uint8_t host, uint16_t port) {
  Address address{.family = family, .port = port};
  address.bytes[15] = host;
  return address;
}

class AddressBookTest : public ::testing::Test {
 protected:
  bool Enter(const Address& address, uint64_t listener) {
    return book_.Enter(address, &owner_, ListenerId{listener}).ok();
  }
  uint64_t Find(const Address& address) const {
    const AddressBook::Entry* entry = book_.Find(address);
    return entry == nullptr ? 0 : static_cast<uint64_t>(entry->listener);
  }

  AddressBook book_;
  Nobody owner_;
};

TEST_F(AddressBookTest, FindsTheExactAddressBeforeTheWildcard) {
  EXPECT_TRUE(Enter(At(Family::kIpv4, 0, 80), 1));
  EXPECT_TRUE(Enter(At(Family::kIpv4, 7, 81), 2));

  EXPECT_EQ(Find(At(Family::kIpv4, 5, 80)), 1u);
  EXPECT_EQ(Find(At(Family::kIpv4, 7, 81)), 2u);
  EXPECT_EQ(Find(At(Family::kIpv4, 8, 81)), 0u);
  EXPECT_EQ(Find(At(Family::kIpv4, 7, 82)), 0u);
}

TEST_F(AddressBookTest, FamiliesArePortSpacesOfTheirOwn) {
  EXPECT_TRUE(Enter(At(Family::kIpv4, 0, 80), 1));
  EXPECT_TRUE(Enter(At(Family::kIpv6, 0, 80), 2));

  EXPECT_EQ(Find(At(Family::kIpv4, 1, 80)), 1u);
  EXPECT_EQ(Find(At(Family::kIpv6, 1, 80)), 2u);
}

TEST_F(AddressBookTest, AWildcardCollidesWithEveryAddressOfItsPort) {
  EXPECT_TRUE(Enter(At(Family::kIpv4, 7, 80), 1));
  EXPECT_TRUE(Enter(At(Family::kIpv4, 8, 80), 2));
  EXPECT_FALSE(Enter(At(Family::kIpv4, 8, 80), 3));
  EXPECT_FALSE(Enter(At(Family::kIpv4, 0, 80), 4));

  book_.Remove(&owner_, ListenerId{1});
  book_.Remove(&owner_, ListenerId{2});

  EXPECT_TRUE(Enter(At(Family::kIpv4, 0, 80), 5));
  EXPECT_FALSE(Enter(At(Family::kIpv4, 7, 80), 6));
  EXPECT_EQ(Find(At(Family::kIpv4, 8, 80)), 5u);
}

TEST_F(AddressBookTest, FreePortsAreDynamicAndRunOut) {
  std::set<uint16_t> ports;
  for (uint64_t i = 1; i <= 16384; ++i) {
    const absl::StatusOr<Address> entered =
        book_.Enter(At(Family::kIpv4, 0, 0), &owner_, ListenerId{i});
    ASSERT_TRUE(entered.ok()) << entered.status();
    ports.insert(entered->port);
  }
  EXPECT_EQ(ports.size(), 16384u);
  EXPECT_EQ(*ports.begin(), 49152);

  const absl::Status full =
      book_.Enter(At(Family::kIpv4, 0, 0), &owner_, ListenerId{20000}).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;

  book_.Remove(&owner_, ListenerId{300});
  EXPECT_TRUE(Enter(At(Family::kIpv4, 0, 0), 20000));
}

}  // namespace
}  // namespace esdp::fabric::sim
