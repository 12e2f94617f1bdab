#include <errno.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
// The packaged library is built with exceptions; the headers alone do without.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "daemon/app/config/config.h"

namespace mets::app {
namespace {

std::string Place(const std::string& file, const toml::source_region& region) {
  return absl::StrCat(file, ":", region.begin.line);
}

const ConfigKey* FindKey(absl::string_view name) {
  for (const ConfigKey& key : ConfigKeys()) {
    if (name == key.name) return &key;
  }
  return nullptr;
}

template <typename Keys>
absl::Status UnknownKey(const std::string& place, absl::string_view name,
                        const Keys& keys, absl::string_view more = "") {
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": unknown key '", name, "'; the keys are ",
                   absl::StrJoin(keys, ", ",
                                 [](std::string* out, const auto& key) {
                                   absl::StrAppend(out, key.name);
                                 }),
                   more));
}

// A text, or a number: sizes may be plain bytes.
std::optional<std::string> ValueOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) {
    return absl::StrCat(number->get());
  }
  return std::nullopt;
}

// One key of a table, which is called `name`; `given` gets it as text.
template <typename Table>
absl::Status SetTableKey(const std::string& place, const std::string& name,
                         const std::string& key_name, const toml::node& node,
                         const std::vector<TableKey<Table>>& keys, Table* table,
                         std::string* given) {
  const auto key = std::find_if(
      keys.begin(), keys.end(),
      [&](const auto& candidate) { return key_name == candidate.name; });
  if (key == keys.end()) return UnknownKey(place, key_name, keys);
  const std::optional<std::string> value = ValueOf(node);
  const absl::Status status =
      value.has_value()
          ? key->set(*value, table)
          : absl::InvalidArgumentError("a text or a number is needed");
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": ", name, " key '", key_name, "': ", status.message()));
  }
  absl::StrAppend(given, given->empty() ? "" : " ", key_name, "=", *value);
  return absl::OkStatus();
}

template <typename Table>
absl::Status AddTable(const std::string& file, const std::string& name,
                      const toml::node& node,
                      const std::vector<TableKey<Table>>& keys,
                      std::vector<Table>* list, Config* config) {
  const std::string place = Place(file, node.source());
  const auto* table = node.as_table();
  if (table == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": write [[", name, "]], and its keys below it"));
  }
  if (table->get(keys.front().name) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": a [[", name, "]] needs the key '", keys.front().name, "'"));
  }
  Table result;
  std::string given;
  for (const auto& [key, value] : *table) {
    METS_RETURN_IF_ERROR(SetTableKey(Place(file, key.source()), name,
                                     std::string(key.str()), value, keys,
                                     &result, &given));
  }
  list->push_back(std::move(result));
  config->given[name].push_back(std::move(given));
  return absl::OkStatus();
}

template <typename Table>
absl::Status AddTables(const std::string& file, const std::string& name,
                       const toml::node& node,
                       const std::vector<TableKey<Table>>& keys,
                       std::vector<Table>* list, Config* config) {
  const auto* tables = node.as_array();
  if (tables == nullptr) {
    return AddTable(file, name, node, keys, list, config);
  }
  for (const toml::node& table : *tables) {
    METS_RETURN_IF_ERROR(AddTable(file, name, table, keys, list, config));
  }
  return absl::OkStatus();
}

absl::Status WrongType(const std::string& place, const ConfigKey& key) {
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": key '", key.name, "' must be a text of the form ",
                   key.form, key.repeatable ? ", or a list of them" : ""));
}

absl::Status SetOne(const std::string& file, const ConfigKey& key,
                    const toml::node& node, Config* config) {
  const std::string place = Place(file, node.source());
  const std::optional<std::string> value = ValueOf(node);
  if (!value.has_value()) return WrongType(place, key);
  const absl::Status status = key.set(*value, config);
  if (status.ok()) {
    config->given[key.name].push_back(*value);
    return status;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(place, ": key '", key.name, "': ", status.message()));
}

absl::Status SetKey(const std::string& file, const ConfigKey& key,
                    const toml::node& node, Config* config) {
  const auto* list = node.as_array();
  if (list == nullptr || !key.repeatable) {
    return SetOne(file, key, node, config);
  }
  for (const toml::node& element : *list) {
    METS_RETURN_IF_ERROR(SetOne(file, key, element, config));
  }
  return absl::OkStatus();
}

// Of two tables for one user, one would count for nothing.
absl::Status CheckDomains(const std::string& file, const Config& config) {
  std::set<uint32_t> users;
  for (const DomainSpec& domain : config.domains) {
    if (!users.insert(domain.uid).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": two [[domain]] tables are for user ",
                       domain.uid, "; make one of them"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadConfigText(const std::string& file, const std::string& text,
                            Config* config) {
  const toml::parse_result result = toml::parse(text, file);
  if (!result) {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(file, result.error().source()), ": ",
                     std::string(result.error().description())));
  }
  for (const auto& [name, node] : result.table()) {
    const std::string key_name(name.str());
    if (key_name == "domain") {
      METS_RETURN_IF_ERROR(AddTables(file, key_name, node, DomainKeys(),
                                     &config->domains, config));
      continue;
    }
    if (key_name == "listener") {
      METS_RETURN_IF_ERROR(AddTables(file, key_name, node, ListenerKeys(),
                                     &config->listeners, config));
      continue;
    }
    const ConfigKey* key = FindKey(key_name);
    if (key == nullptr) {
      return UnknownKey(Place(file, name.source()), key_name, ConfigKeys(),
                        "; the tables are [[domain]] and [[listener]]");
    }
    METS_RETURN_IF_ERROR(SetKey(file, *key, node, config));
  }
  return CheckDomains(file, *config);
}

absl::Status ReadConfigFile(const std::string& file, Config* config) {
  // A directory can be opened, and reads as if it were empty.
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(file, ignored);
  std::ifstream stream(file);
  if (!stream || directory) {
    return ErrnoToStatus(directory ? EISDIR : errno,
                         absl::StrCat("read configuration ", file));
  }
  std::stringstream text;
  text << stream.rdbuf();
  return ReadConfigText(file, text.str(), config);
}

}  // namespace mets::app
