// The process's connection to metsd, and the devices it has there.
#ifndef METS_TF_ALLOCATOR_TF_PROCESS_MEMORY_H_
#define METS_TF_ALLOCATOR_TF_PROCESS_MEMORY_H_

#include <string>

#include "tf_allocator/core/device_memory.h"

namespace mets {

// Opens libmets, beside this library in `folder`, once, and a device of the
// daemon (see DeviceMemory::Open). The memory lives until the process ends:
// tensors may outlive every device. Null with a text in `error`; in a forked
// child, without one.
DeviceMemory* OpenMemory(const std::string& folder, const char* id,
                         const char* kind, std::string* error);

// The first one opened; null when there is none.
DeviceMemory* ProcessMemory();

bool InForkedChild();

// METS_REQUIRED: without METS the program is to stop.
bool MetsRequired();

// One line on stderr, once per text.
void SayWithoutMets(const std::string& what, const std::string& why);

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_PROCESS_MEMORY_H_
