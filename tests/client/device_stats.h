// StatsOf: a device's numbers, as a program asks for them.
#ifndef METS_TESTS_CLIENT_DEVICE_STATS_H_
#define METS_TESTS_CLIENT_DEVICE_STATS_H_

#include "client/src/device.h"

namespace mets::client {

inline mets_stats_t StatsOf(Device& device) {
  mets_stats_t stats = METS_STATS_INIT;
  device.GetStats(&stats);
  return stats;
}

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_DEVICE_STATS_H_
