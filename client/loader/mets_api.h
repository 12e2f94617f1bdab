// The functions of libmets, taken with dlsym from a library opened with
// RTLD_DEEPBIND: a framework's process may have its own gRPC, protobuf and
// Abseil, which libmets' must not meet.
#ifndef METS_CLIENT_LOADER_METS_API_H_
#define METS_CLIENT_LOADER_METS_API_H_

#include <string>

#include "client/include/mets/mets.h"

namespace mets {

// Table of functions; all are set once LoadMetsApi has returned true. A plain
// value: copy it freely. The library stays loaded until the process ends.
struct MetsApi {
  decltype(&mets_abi_version) abi_version = nullptr;
  decltype(&mets_last_error) last_error = nullptr;
  decltype(&mets_open) open = nullptr;
  decltype(&mets_device_open) device_open = nullptr;
  decltype(&mets_device_get_info) device_get_info = nullptr;
  decltype(&mets_alloc) alloc = nullptr;
  decltype(&mets_free) free = nullptr;
  decltype(&mets_find) find = nullptr;
  decltype(&mets_owns) owns = nullptr;
  decltype(&mets_set_mobility) set_mobility = nullptr;
  decltype(&mets_op_begin) op_begin = nullptr;
  decltype(&mets_op_end) op_end = nullptr;
  decltype(&mets_op_detach) op_detach = nullptr;
  decltype(&mets_op_name) op_name = nullptr;
  decltype(&mets_gate_enter) gate_enter = nullptr;
  decltype(&mets_gate_leave) gate_leave = nullptr;
  decltype(&mets_step_hint) step_hint = nullptr;
  decltype(&mets_get_stats) get_stats = nullptr;
  decltype(&mets_reset_peak) reset_peak = nullptr;
};

// The library to open: METS_LIBRARY, else libmets.so in `folder` when it is
// there, else the name alone, which the dynamic linker looks up.
std::string LibmetsPath(const std::string& folder);

// Opens `path` and fills `api`. Returns false, with a text in `error`, when it
// cannot be opened, lacks a function or has another METS_ABI_VERSION.
[[nodiscard]] bool LoadMetsApi(const std::string& path, MetsApi* api,
                               std::string* error);

}  // namespace mets

#endif  // METS_CLIENT_LOADER_METS_API_H_
