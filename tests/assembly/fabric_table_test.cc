#include "impl/assembly/fabric_table.h"

#include <set>
#include <string>

#include "esdp/context.h"
#include "gtest/gtest.h"

namespace esdp::assembly {
namespace {

TEST(FabricTableTest, EachNameIsUniqueAndThatOfItsTransport) {
  std::set<std::string> names;
  for (const FabricRow& row : FabricTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_STREQ(row.name, ToString(row.transport));
    EXPECT_EQ(FindFabric(row.name), &row);
    EXPECT_EQ(FindFabric(row.transport), &row);
  }
  EXPECT_EQ(FindFabric("auto"), nullptr);
  EXPECT_EQ(FindFabric(""), nullptr);
  EXPECT_EQ(FindFabric(Transport::kNone), nullptr);
}

TEST(FabricTableTest, EveryFabricOfTheBuildIsReadAndListed) {
  const absl::Status unknown = ParseFabricName("nonsense").status();
  const std::string listed(unknown.message().data(), unknown.message().size());
  for (const FabricRow& row : FabricTable()) {
    EXPECT_TRUE(ParseFabricName(row.name).ok()) << row.name;
    EXPECT_NE(listed.find("\"" + std::string(row.name) + "\""), std::string::npos) << listed;
  }
}

TEST(FabricTableTest, AutoEndsWithAFabricThatIsAlwaysThere) {
  const FabricRow* last = nullptr;
  for (const FabricRow& row : FabricTable()) {
    if (row.in_auto == InAuto::kNever) continue;
    EXPECT_STRNE(row.why_auto, "") << row.name;
    last = &row;
  }
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->in_auto, InAuto::kAlways);
}

TEST(FabricTableTest, DiagnoseReportsTheRowsInOrder) {
  const DiagnosticsReport report = Context::Diagnose({});
  ASSERT_EQ(report.fabrics.size(), FabricTable().size());
  for (size_t i = 0; i < report.fabrics.size(); ++i) {
    EXPECT_EQ(report.fabrics[i].name, FabricTable()[i].name);
  }
}

TEST(FabricTableTest, DiagnoseNamesTheFabricsThatLockNoMemory) {
  EXPECT_NE(Context::Diagnose({}).ToString().find("; local, qpip and sim lock none"),
            std::string::npos);
}

}  // namespace
}  // namespace esdp::assembly
