#include "model/intent.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/limits.h"

namespace vmonce::model {
namespace {

TEST(Intent, SerialisesToCanonicalJsonOfVersionOne) {
  CreateIntent intent;
  intent.name = "web";
  intent.image = "debian";
  intent.ssh_keys = {"b", "a"};
  intent.labels = {{"tier", "front"}, {"app", "shop"}};
  intent.user_data_mac = Digest{0xab};
  EXPECT_EQ(Serialise(intent),
            R"({"count":1,"cpus":1,"disk_gib":0,"hostname":"","image":"debian",)"
            R"("labels":{"app":"shop","tier":"front"},"memory_mib":512,"name":"web",)"
            R"("network":"user","ssh_keys":["b","a"],"user_data_mac":"ab)" +
                std::string(62, '0') + R"(","version":1})");
}

TEST(Intent, SerialisesAnEmptyOneWithEveryMember) {
  EXPECT_EQ(Serialise(CreateIntent{}),
            R"({"count":1,"cpus":1,"disk_gib":0,"hostname":"","image":"","labels":{},)"
            R"("memory_mib":512,"name":"","network":"user","ssh_keys":[],)"
            R"("user_data_mac":null,"version":1})");
}

TEST(Intent, HasItsForwardsInTheOrderAsked) {
  CreateIntent intent;
  intent.forwards = {{.guest_port = 53, .protocol = Protocol::kUdp, .host_port = 20'053},
                     {.guest_port = 22}};
  EXPECT_EQ(Serialise(intent),
            R"({"count":1,"cpus":1,"disk_gib":0,)"
            R"("forward":[{"guest_port":53,"host_port":20053,"protocol":"udp"},)"
            R"({"guest_port":22,"host_port":0,"protocol":"tcp"}],"hostname":"","image":"",)"
            R"("labels":{},"memory_mib":512,"name":"","network":"user","ssh_keys":[],)"
            R"("user_data_mac":null,"version":1})");
}

TEST(Intent, IsItsOwnCanonicalForm) {
  CreateIntent intent;
  intent.hostname = "\"\\/\x7f\u00e9\U0001F600";
  intent.labels = {{"\U0001F600", "1"}, {"\uFB33", "2"}};
  const std::string text = Serialise(intent);
  const auto parsed = ParseStrictJson(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(CanonicalJson(*parsed), text);
}

TEST(Intent, DiffersInTextWhereverItDiffers) {
  const std::vector<std::function<void(CreateIntent&)>> changes = {
      [](CreateIntent&) {},
      [](CreateIntent& intent) { intent.name = "x"; },
      [](CreateIntent& intent) { intent.desired = Desired::kStopped; },
      [](CreateIntent& intent) { intent.restart = RestartPolicy::kNever; },
      [](CreateIntent& intent) { intent.image = "x"; },
      [](CreateIntent& intent) { intent.count = 2; },
      [](CreateIntent& intent) { intent.cpus = 2; },
      [](CreateIntent& intent) { intent.memory_mib = 513; },
      [](CreateIntent& intent) { intent.disk_gib = 1; },
      [](CreateIntent& intent) { intent.hostname = "x"; },
      [](CreateIntent& intent) { intent.ssh_keys = {"a", "b"}; },
      [](CreateIntent& intent) { intent.ssh_keys = {"b", "a"}; },
      [](CreateIntent& intent) { intent.network = "x"; },
      [](CreateIntent& intent) { intent.forwards = {{.guest_port = 22}}; },
      [](CreateIntent& intent) { intent.forwards = {{.guest_port = 22, .host_port = 20'022}}; },
      [](CreateIntent& intent) {
        intent.forwards = {{.guest_port = 22, .protocol = Protocol::kUdp}};
      },
      [](CreateIntent& intent) { intent.forwards = {{.guest_port = 22}, {.guest_port = 80}}; },
      [](CreateIntent& intent) { intent.forwards = {{.guest_port = 80}, {.guest_port = 22}}; },
      [](CreateIntent& intent) { intent.labels = {{"a", ""}}; },
      [](CreateIntent& intent) { intent.labels = {{"", "a"}}; },
      [](CreateIntent& intent) { intent.user_data_mac = Digest{}; },
      [](CreateIntent& intent) { intent.user_data_mac = Digest{1}; },
  };
  std::set<std::string> texts;
  for (const auto& change : changes) {
    CreateIntent intent;
    change(intent);
    EXPECT_TRUE(texts.insert(Serialise(intent)).second) << Serialise(intent);
  }
}

TEST(ItemName, IsTheNameItselfForOne) { EXPECT_EQ(ItemName("web", 0, 1), "web"); }

TEST(ItemName, CountsFromZeroForMany) {
  EXPECT_EQ(ItemName("web", 0, 2), "web-0");
  EXPECT_EQ(ItemName("web", 1, 2), "web-1");
  EXPECT_EQ(ItemName("web", 99, 100), "web-99");
}

TEST(ItemNameDeath, RefusesAnIndexOutsideTheBatch) {
  EXPECT_DEATH(ItemName("web", 2, 2), "index");
  EXPECT_DEATH(ItemName("web", -1, 2), "index");
}

TEST(GeneratedName, EndsLikeTheId) {
  const VmId vm{ParseUuid("01890a5d-ac96-774b-bcce-b302099a8057").value()};
  EXPECT_EQ(GeneratedName(vm), "vm-b302099a8057");
  EXPECT_TRUE(IsValidName(GeneratedName(vm)));
}

TEST(ValidName, IsADnsLabelInLowerCase) {
  const std::string longest(limits::kNameBytes, 'a');
  for (const std::string& name : {std::string("a"), std::string("0"), std::string("a-b"),
                                  std::string("a--b"), std::string("9z"), longest}) {
    EXPECT_TRUE(IsValidName(name)) << name;
  }
  const std::string with_nul("a\0b", 3);
  for (const std::string& name :
       {std::string(), std::string("-"), std::string("-a"), std::string("a-"), std::string("A"),
        std::string("a_b"), std::string("a.b"), std::string("a b"), std::string("a\n"),
        std::string("\u00e9"), with_nul, longest + "a"}) {
    EXPECT_FALSE(IsValidName(name)) << name;
  }
}

TEST(ValidName, AllowsNoByteButThirtySeven) {
  int allowed = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = std::string("a") + static_cast<char>(byte) + "a";
    if (IsValidName(name)) ++allowed;
  }
  EXPECT_EQ(allowed, 26 + 10 + 1);
}

}  // namespace
}  // namespace vmonce::model
