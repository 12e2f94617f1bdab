#include "client/ctl/watch/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace mets::ctl {
namespace {

using Json = nlohmann::json;

v1::Event Made(const std::string& kind, int64_t unix_us, double took) {
  v1::Event event;
  event.set_kind(kind);
  event.set_unix_us(unix_us);
  event.set_took_seconds(took);
  event.set_job("bert");
  event.set_device("host0");
  event.set_text(kind + " in words");
  return event;
}

// What the format demands of each event.
void ExpectWellFormed(const Json& event) {
  const std::string phase = event.at("ph");
  EXPECT_TRUE(event.at("name").is_string());
  EXPECT_TRUE(event.at("pid").is_number_integer());
  EXPECT_TRUE(event.at("tid").is_number_integer());
  EXPECT_TRUE(std::set<std::string>({"X", "M", "C", "i"}).count(phase) > 0);
  if (phase != "M") {
    EXPECT_GE(event.at("ts").get<int64_t>(), 0);
  }
  if (phase == "X") {
    EXPECT_GE(event.at("dur").get<int64_t>(), 0);
  }
}

TEST(ChromeTraceTest, EventsBecomeSlicesThatEndWhenTheyWereOver) {
  v1::Event turn = Made("turn", 10'000'000, 2);
  turn.set_waited_seconds(1);
  v1::Event other = Made("evicted", 9'000'000, 0.5);
  other.set_job("resnet");
  other.set_for_job("bert");
  const Json trace = Json::parse(ChromeTrace(
      "bert",
      {Made("stepped", 8'000'000, 0.25), turn, other,
       Made("evicted", 9'500'000, 0.1), Made("denied", 9'600'000, 0.2),
       Made("planned", 9'700'000, 0)},
      {{9'800'000, "host0", 3, 2, 1}}));
  std::map<std::string, Json> by_name;
  for (const Json& event : trace.at("traceEvents")) {
    ExpectWellFormed(event);
    by_name[event.at("name")] = event;
  }
  // The turn's wait began first, at 7 s.
  EXPECT_EQ(by_name["waits for its turn"]["ts"], 0);
  EXPECT_EQ(by_name["waits for its turn"]["dur"], 1'000'000);
  EXPECT_EQ(by_name["has the device"]["ts"], 1'000'000);
  EXPECT_EQ(by_name["has the device"]["dur"], 2'000'000);
  EXPECT_EQ(by_name["step"]["ts"], 750'000);
  EXPECT_EQ(by_name["evict"]["dur"], 100'000);
  EXPECT_EQ(by_name["evict resnet"]["args"]["text"], "evicted in words");
  EXPECT_EQ(by_name["planned"]["ph"], "i");
  EXPECT_EQ(by_name["memory on host0"]["args"]["resident"], 3);
  EXPECT_EQ(by_name["process_name"]["args"]["name"], "METS job bert");
}

TEST(ChromeTraceTest, SlicesOfOneThreadDoNotOverlap) {
  std::vector<v1::Event> events;
  for (int i = 0; i < 20; ++i) {
    events.push_back(Made("granted", 1'000'000 + i * 10'000, 0.1));
  }
  const Json trace = Json::parse(ChromeTrace("bert", events, {}));
  std::map<int, int64_t> busy;
  std::set<int> named, used;
  for (const Json& event : trace.at("traceEvents")) {
    if (event["name"] == "thread_name") named.insert(event["tid"].get<int>());
    if (event["ph"] != "X") continue;
    const int thread = event["tid"];
    used.insert(thread);
    EXPECT_GE(event["ts"].get<int64_t>(), busy[thread]);
    busy[thread] = event["ts"].get<int64_t>() + event["dur"].get<int64_t>();
  }
  EXPECT_EQ(used.size(), 10u);
  EXPECT_EQ(named, used);
}

TEST(ChromeTraceTest, NothingIsATraceToo) {
  const Json trace = Json::parse(ChromeTrace("bert", {}, {}));
  EXPECT_EQ(trace.at("traceEvents").size(), 1u);
}

}  // namespace
}  // namespace mets::ctl
