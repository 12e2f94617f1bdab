#include "client/ctl/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace mets::ctl {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr Parts kAll = {true, true, true, true};

v1::GetStatusResponse Sample() {
  v1::GetStatusResponse status;
  status.set_policy("lru");
  v1::DeviceStatus& device = *status.add_devices();
  device.set_id("host0");
  device.set_kind("host");
  device.set_pool_bytes(uint64_t{5} << 30);
  v1::JobStatus& job = *status.add_jobs();
  job.set_name("bert");
  job.set_device("host0");
  job.set_resident_bytes(3 << 20);
  job.set_priority(-2);
  return status;
}

TEST(StatusTextTest, SharesAreListedWithWhoHasThem) {
  v1::GetStatusResponse status = Sample();
  EXPECT_EQ(ToTables(status, {false, false, false, true}), "no shares\n");
  EXPECT_EQ(Json::parse(ToJson(status, kAll)).at("shares"), Json::array());
  v1::ShareStatus& share = *status.add_shares();
  share.set_name("weights");
  share.set_device("host0");
  share.set_bytes(3 << 20);
  share.set_sessions(2);
  share.add_jobs("left");
  share.add_jobs("right");
  share.set_payer("left");
  const std::string table = ToTables(status, kAll);
  EXPECT_THAT(table, HasSubstr("weights  host0   left        left,right"));
  EXPECT_THAT(table, HasSubstr("3 MiB"));
  const Json json = Json::parse(ToJson(status, kAll)).at("shares").at(0);
  EXPECT_EQ(json.at("jobs"), Json({"left", "right"}));
  EXPECT_EQ(json.at("payer"), "left");
}

TEST(StatusTextTest, TablesSayWhatOperatorsHaveSaid) {
  v1::GetStatusResponse status = Sample();
  EXPECT_THAT(ToTables(status, kAll), HasSubstr("       yes\n"));
  status.mutable_devices(0)->set_drained(true);
  status.mutable_jobs(0)->set_phase("paused");
  EXPECT_THAT(ToTables(status, kAll), HasSubstr("        no\n"));
  EXPECT_THAT(ToTables(status, kAll), HasSubstr(" paused\n"));
}

TEST(StatusTextTest, JsonHasEveryPromisedField) {
  const Json json = Json::parse(ToJson(Sample(), kAll));
  const Json& device = json.at("devices").at(0);
  for (const char* name :
       {"pool_bytes", "free_bytes", "cached_bytes", "resident_bytes",
        "swap_used_bytes", "swap_clean_bytes", "swap_limit_bytes"}) {
    ASSERT_TRUE(device.contains(name)) << name;
    EXPECT_TRUE(device.at(name).is_number_unsigned()) << name;
  }
  EXPECT_EQ(device.at("id"), "host0");
  EXPECT_EQ(device.at("kind"), "host");
  EXPECT_EQ(device.at("pool_bytes"), uint64_t{5} << 30);
  const Json& job = json.at("jobs").at(0);
  for (const char* name :
       {"sessions", "resident_bytes", "swapped_bytes", "pinned_bytes",
        "held_bytes", "limit_bytes", "guarantee_bytes", "priority",
        "evicted_bytes_total", "restored_bytes_total",
        "unobserved_accesses_total", "waiting"}) {
    ASSERT_TRUE(job.contains(name)) << name;
    EXPECT_TRUE(job.at(name).is_number_integer()) << name;
  }
  EXPECT_EQ(job.at("name"), "bert");
  EXPECT_EQ(job.at("device"), "host0");
  EXPECT_EQ(job.at("priority"), -2);
}

TEST(StatusTextTest, JsonHasOnlyTheWantedParts) {
  const Json json = Json::parse(ToJson(Sample(), {false, true, false}));
  EXPECT_FALSE(json.contains("devices"));
  EXPECT_TRUE(json.contains("jobs"));
}

TEST(StatusTextTest, TablesAreAligned) {
  v1::GetStatusResponse status = Sample();
  status.mutable_devices()->Add()->set_id("a-longer-name");
  const std::string text = ToTables(status, {true, false, false});
  const size_t first = text.find('\n');
  const size_t second = text.find('\n', first + 1);
  EXPECT_EQ(second - first, first + 1);
  EXPECT_THAT(text, HasSubstr("a-longer-name"));
  EXPECT_THAT(text, HasSubstr("5 GiB"));
}

TEST(StatusTextTest, NoJobsIsSaid) {
  EXPECT_EQ(ToTables({}, {false, true, false}), "no jobs\n");
}

}  // namespace
}  // namespace mets::ctl
