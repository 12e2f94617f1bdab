// TopModel: what metsctl top shows, without a terminal.
#ifndef METS_CLIENT_CTL_TOP_TOP_MODEL_H_
#define METS_CLIENT_CTL_TOP_TOP_MODEL_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "mets/v1/admin.pb.h"

namespace mets::ctl {

// One job on one device.
struct TopRow {
  std::string job;
  std::string device;
  std::string phase;  // In words: "waits for its turn".
  Bytes resident, swapped, pinned, limit;
  double traffic = 0;   // Bytes a second, both ways.
  double waited = 0;    // Seconds, for memory and for turns, so far.
  double step = 0;      // Seconds; 0: none repeats.
  double slowdown = 0;  // Against its steps alone; 0: not known.
  char letter = '?';    // In the devices' bars.
  int colour = 0;       // 0 to kColours - 1.
};

// What can be sorted by, in the order of the columns.
enum class TopSort {
  kJob,
  kDevice,
  kPhase,
  kResident,
  kSwapped,
  kPinned,
  kTraffic,
  kWaited,
  kStep,
  kSlowdown,
};
inline constexpr int kTopSorts = 10;

// The state that was asked for last, the rates since the state before, and
// what the user wants to see of it. Not thread-safe.
class TopModel {
 public:
  static constexpr int kColours = 6;

  // A state as of `now`, which does not go back.
  void Update(absl::Time now, v1::GetStatusResponse status);
  // metsd does not answer: why. An Update ends it.
  void Fail(std::string error) { error_ = std::move(error); }

  // The next or the previous column.
  void MoveSort(int by);
  void Reverse() { descending_ = !descending_; }
  // Shows jobs whose name, device or state contains the text, in any case.
  void set_filter(std::string filter) { filter_ = std::move(filter); }

  // Filtered and sorted; equal ones by name.
  std::vector<TopRow> Rows() const;
  // Every job on the device, largest first.
  std::vector<TopRow> RowsOf(const std::string& device) const;

  const v1::GetStatusResponse& status() const { return status_; }
  const std::string& filter() const { return filter_; }
  const std::string& error() const { return error_; }
  TopSort sort() const { return sort_; }
  bool descending() const { return descending_; }

 private:
  bool Matches(const TopRow& row) const;

  v1::GetStatusResponse status_;
  std::vector<TopRow> rows_;
  std::map<std::string, uint64_t> moved_;  // Bytes so far, by job and device.
  // Letters stay a job's own while it is there.
  std::map<std::string, int> numbers_;
  int next_number_ = 0;
  absl::Time updated_ = absl::InfinitePast();
  TopSort sort_ = TopSort::kResident;
  bool descending_ = true;
  std::string filter_;
  std::string error_;
};

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_TOP_TOP_MODEL_H_
