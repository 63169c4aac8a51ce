// For tests: holds JSON to the schemas of the contract. Stricter than JSON Schema: a member that no
// schema names is a violation, so that nothing is served that is not written down.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/rest/contract.h"

namespace vmonce::rest {

class ContractCheck {
 public:
  ContractCheck() : document_(boost::json::parse(ContractJson())) {}

  const boost::json::object& document() const { return document_.get_object(); }

  // "#/components/schemas/Vm" → its schema.
  const boost::json::value& Resolve(std::string_view reference) const {
    return document_.at_pointer(reference.substr(1));
  }

  // What is wrong with `value` as a `schema` ("Vm"): one line each.
  std::vector<std::string> Violations(std::string_view schema,
                                      const boost::json::value& value) const {
    std::vector<std::string> found;
    Check(Resolve("#/components/schemas/" + std::string(schema)), value, std::string(schema),
          found);
    return found;
  }

 private:
  using Found = std::vector<std::string>;

  static std::string_view TypeOf(const boost::json::value& value) {
    if (value.is_object()) return "object";
    if (value.is_array()) return "array";
    if (value.is_string()) return "string";
    if (value.is_bool()) return "boolean";
    return value.is_null() ? "null" : value.is_double() ? "number" : "integer";
  }

  void Check(const boost::json::value& schema, const boost::json::value& value,
             const std::string& at, Found& found) const {
    const boost::json::object& rules = schema.get_object();
    if (const auto* reference = rules.if_contains("$ref")) {
      Check(Resolve(reference->get_string()), value, at, found);
      return;
    }
    if (const auto* choices = rules.if_contains("oneOf")) {
      CheckOneOf(choices->get_array(), value, at, found);
      return;
    }
    CheckType(rules, value, at, found);
    if (const auto* words = rules.if_contains("enum")) {
      const boost::json::array& allowed = words->get_array();
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        found.push_back(at + " is not one of the words: " + boost::json::serialize(value));
      }
    }
    if (value.is_object()) CheckMembers(rules, value.get_object(), at, found);
    const auto* items = rules.if_contains("items");
    if (!value.is_array() || items == nullptr) return;
    for (const auto& item : value.get_array()) Check(*items, item, at + "[]", found);
  }

  void CheckOneOf(const boost::json::array& choices, const boost::json::value& value,
                  const std::string& at, Found& found) const {
    Found last;
    for (const auto& choice : choices) {
      last.clear();
      Check(choice, value, at, last);
      if (last.empty()) return;
    }
    found.insert(found.end(), last.begin(), last.end());
  }

  static void CheckType(const boost::json::object& rules, const boost::json::value& value,
                        const std::string& at, Found& found) {
    const auto* type = rules.if_contains("type");
    if (type == nullptr) return;
    boost::json::array allowed;
    if (type->is_array()) allowed = type->get_array();
    if (type->is_string()) allowed.push_back(*type);
    for (const auto& name : allowed) {
      if (name.get_string() == TypeOf(value)) return;
    }
    found.push_back(at + " is of type " + std::string(TypeOf(value)));
  }

  void CheckMembers(const boost::json::object& rules, const boost::json::object& value,
                    const std::string& at, Found& found) const {
    if (const auto* required = rules.if_contains("required")) {
      for (const auto& name : required->get_array()) {
        if (!value.contains(name.get_string())) {
          found.push_back(at + " lacks " + std::string(name.get_string()));
        }
      }
    }
    const auto* properties = rules.if_contains("properties");
    const auto* others = rules.if_contains("additionalProperties");
    for (const auto& member : value) {
      const std::string inner = at + "." + std::string(member.key());
      const auto* known = properties ? properties->get_object().if_contains(member.key()) : nullptr;
      if (known != nullptr) {
        Check(*known, member.value(), inner, found);
      } else if (others != nullptr && others->is_object()) {
        Check(*others, member.value(), inner, found);
      } else {
        found.push_back(inner + " is in no schema");
      }
    }
  }

  boost::json::value document_;
};

}  // namespace vmonce::rest
