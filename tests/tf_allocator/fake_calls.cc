#include "tests/tf_allocator/fake_calls.h"

#include <cstdlib>
#include <mutex>

#include "client/include/mets/mets.h"

namespace {

std::mutex g_mutex;
std::string g_calls;

}  // namespace

void NoteCall(const std::string& line, const void* stream) {
  static const bool noted = std::getenv("FAKE_METS_CALLS") != nullptr;
  if (!noted) return;
  std::lock_guard<std::mutex> lock(g_mutex);
  g_calls += line;
  if (stream != nullptr) {
    g_calls += " " + std::to_string(reinterpret_cast<uintptr_t>(stream));
  }
  g_calls += "\n";
}

extern "C" {

const char* fake_mets_calls() {
  static std::string taken;
  std::lock_guard<std::mutex> lock(g_mutex);
  taken.swap(g_calls);
  g_calls.clear();
  return taken.c_str();
}

// Gates of the fake are always open.
mets_status mets_gate_enter(mets_device*) {
  NoteCall("enter");
  return METS_OK;
}

void mets_gate_leave(mets_device*) { NoteCall("leave"); }

void mets_step_hint(mets_device*) { NoteCall("hint"); }

}  // extern "C"
