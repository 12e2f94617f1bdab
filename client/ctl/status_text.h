// The daemon's state as JSON and as tables.
#ifndef METS_CLIENT_CTL_STATUS_TEXT_H_
#define METS_CLIENT_CTL_STATUS_TEXT_H_

#include <string>

#include "mets/v1/admin.pb.h"

namespace mets::ctl {

// Which parts of the state are wanted.
struct Parts {
  bool devices = false;
  bool jobs = false;
  bool daemon = false;  // Epoch, policy, version, uptime.
  bool shares = false;
};

// {"devices": […], "jobs": […], "shares": […]}: names as in the protocol,
// amounts as numbers.
std::string ToJson(const v1::GetStatusResponse& status, Parts parts);

// Aligned columns under headings.
std::string ToTables(const v1::GetStatusResponse& status, Parts parts);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_STATUS_TEXT_H_
