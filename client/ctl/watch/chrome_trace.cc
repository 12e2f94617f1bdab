#include "client/ctl/watch/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mets::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;
// Threads of one kind follow one another.
constexpr int kThreadsPerKind = 100;
constexpr const char* kKinds[] = {
    "steps",     "turns",    "waits for memory",
    "evictions", "restores", "evictions of others for it"};
enum Kind { kSteps, kTurns, kWaits, kEvictions, kRestores, kOthers };

struct Slice {
  int kind = kSteps;
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
  Json args;
};

int64_t Micros(double seconds) {
  return static_cast<int64_t>(std::llround(seconds * 1e6));
}

Json ArgsOf(const v1::Event& event) {
  Json args = {{"text", event.text()}, {"device", event.device()}};
  if (event.bytes() > 0) args["bytes"] = event.bytes();
  if (event.count() > 0) args["count"] = event.count();
  return args;
}

class TraceWriter {
 public:
  explicit TraceWriter(std::string job) : job_(std::move(job)) {}

  void Add(const v1::Event& event) {
    const int64_t end = event.unix_us();
    const int64_t begin = end - Micros(event.took_seconds());
    if (event.kind() == "stepped") {
      Keep(kSteps, "step", begin, end, event);
    } else if (event.kind() == "turn") {
      const int64_t asked = begin - Micros(event.waited_seconds());
      if (asked < begin)
        Keep(kTurns, "waits for its turn", asked, begin, event);
      Keep(kTurns, "has the device", begin, end, event);
    } else if (event.kind() == "granted" || event.kind() == "denied") {
      Keep(kWaits, event.kind(), begin, end, event);
    } else if (event.kind() == "restored") {
      Keep(kRestores, "restore", begin, end, event);
    } else if (event.kind() == "evicted") {
      const bool own = event.job() == job_;
      Keep(own ? kEvictions : kOthers,
           own ? "evict" : absl::StrCat("evict ", event.job()), begin, end,
           event);
    } else {
      instants_.push_back(event);
    }
    first_ = std::min(first_, begin - Micros(event.waited_seconds()));
  }

  void Add(const MemoryPoint& point) {
    points_.push_back(point);
    first_ = std::min(first_, point.unix_us);
  }

  std::string Write() {
    Json events = Json::array();
    Name("process_name", kProcess, 0, absl::StrCat("METS job ", job_), &events);
    WriteSlices(&events);
    for (const v1::Event& event : instants_) {
      events.push_back({{"name", event.kind()},
                        {"ph", "i"},
                        {"s", "p"},
                        {"ts", event.unix_us() - first_},
                        {"pid", kProcess},
                        {"tid", 0},
                        {"args", ArgsOf(event)}});
    }
    for (const MemoryPoint& point : points_) WritePoint(point, &events);
    const Json trace = {{"displayTimeUnit", "ms"},
                        {"traceEvents", std::move(events)}};
    return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  void Keep(int kind, std::string name, int64_t begin, int64_t end,
            const v1::Event& event) {
    slices_.push_back({kind, std::move(name), begin, end, ArgsOf(event)});
  }

  static void Name(const char* what, int process, int thread,
                   const std::string& name, Json* events) {
    events->push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", process},
                       {"tid", thread},
                       {"args", {{"name", name}}}});
  }

  // The first thread of its kind that is free then.
  static int ThreadFor(const Slice& slice, std::map<int, int64_t>* busy_until) {
    for (int i = 0;; ++i) {
      const int thread = 1 + slice.kind * kThreadsPerKind + i;
      const auto it = busy_until->find(thread);
      const bool last = i == kThreadsPerKind - 1;
      if (it != busy_until->end() && it->second > slice.begin && !last)
        continue;
      (*busy_until)[thread] = slice.end;
      return thread;
    }
  }

  void WriteSlices(Json* events) {
    std::stable_sort(
        slices_.begin(), slices_.end(),
        [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    std::map<int, int64_t> busy_until;
    for (const Slice& slice : slices_) {
      const int thread = ThreadFor(slice, &busy_until);
      events->push_back({{"name", slice.name},
                         {"cat", kKinds[slice.kind]},
                         {"ph", "X"},
                         {"ts", slice.begin - first_},
                         {"dur", slice.end - slice.begin},
                         {"pid", kProcess},
                         {"tid", thread},
                         {"args", slice.args}});
    }
    for (const auto& [thread, until] : busy_until) {
      Name("thread_name", kProcess, thread,
           kKinds[(thread - 1) / kThreadsPerKind], events);
    }
  }

  void WritePoint(const MemoryPoint& point, Json* events) const {
    events->push_back({{"name", absl::StrCat("memory on ", point.device)},
                       {"ph", "C"},
                       {"ts", point.unix_us - first_},
                       {"pid", kProcess},
                       {"tid", 0},
                       {"args",
                        {{"resident", point.resident_bytes},
                         {"swapped", point.swapped_bytes},
                         {"pinned", point.pinned_bytes}}}});
  }

  const std::string job_;
  std::vector<Slice> slices_;
  std::vector<v1::Event> instants_;
  std::vector<MemoryPoint> points_;
  int64_t first_ = INT64_MAX;
};

}  // namespace

std::string ChromeTrace(const std::string& job,
                        const std::vector<v1::Event>& events,
                        const std::vector<MemoryPoint>& points) {
  TraceWriter writer(job);
  for (const v1::Event& event : events) writer.Add(event);
  for (const MemoryPoint& point : points) writer.Add(point);
  return writer.Write();
}

}  // namespace mets::ctl
