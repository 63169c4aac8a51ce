#include "hypervisor/domain_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hypervisor/label_xml.h"
#include "hypervisor/xml_text.h"

namespace vmonce::hypervisor {
namespace {

using testing::HasSubstr;
using testing::Not;

ports::DomainOrder Order() {
  const model::VmId vm{*ParseUuid("01900000-0000-7000-8000-0000000000aa")};
  return {.vm = vm,
          .name = "vmonce-0123456789ab-x",
          .label = {.ledger = {"0123456789ab"},
                    .host = {"one"},
                    .project = {"it's <default> & \"more\""},
                    .key_hash = std::string(64, 'a'),
                    .fingerprint = std::string(64, 'b'),
                    .operation = {*ParseUuid("01900000-0000-7000-8000-000000000001")},
                    .index = 2,
                    .fence = {5},
                    .sequence = 77},
          .spec = {.image = {.name = "tiny",
                             .kind = model::ImageKind::kKernel,
                             .kernel_path = "/boot/vm<linuz>",
                             .initrd_path = "/boot/initrd.gz",
                             .cmdline = "console=ttyS0 a=\"b c\" & d"},
                   .cpus = 2,
                   .memory_mib = 256},
          .mac = "52:54:00:00:00:aa",
          .disk_name = "d",
          .seed_name = "s"};
}

DomainPlaces Places() {
  return {.disk_path = "/disks/d",
          .seed_path = "/disks/s",
          .kernel_path = "/boot/vm<linuz>",
          .initrd_path = "/boot/initrd.gz",
          .console_path = "/consoles/c.log"};
}

std::string Xml(const ports::DomainOrder& order, const DomainPlaces& places) {
  auto xml = BuildDomainXml(order, places);
  EXPECT_TRUE(xml) << xml.error().detail;
  return xml.value_or("");
}

// A domain whose metadata is given, as libvirt would print it.
std::string WithMetadata(const std::string& metadata) {
  return "<domain type='kvm' id='7'><name>n</name><uuid>01900000-0000-7000-8000-0000000000aa</uuid>"
         "<metadata>" +
         metadata + "</metadata><devices/></domain>";
}

// A well-formed label; `from` is replaced by `to` in it.
std::string LabelElement(const std::string& from = "", const std::string& to = "") {
  std::string element = BuildLabelXml(Order().label).value_or("");
  element.replace(0, 7, "<v:label xmlns:v='https://vmonce.dev/label/1' ");
  if (!from.empty()) element.replace(element.find(from), from.size(), to);
  return element;
}

TEST(DomainXml, ReadsBackWhatItWrote) {
  const auto order = Order();
  const auto parsed = ParseDomain(Xml(order, Places()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, order.vm);
  EXPECT_EQ(parsed->name, order.name);
  EXPECT_EQ(parsed->label, order.label);
}

TEST(DomainXml, ReadsBackTheOriginInALabel) {
  auto order = Order();
  order.label.origin = model::Origin{.name = "web-2",
                                     .count = 3,
                                     .desired = model::Desired::kStopped,
                                     .restart = model::RestartPolicy::kNever,
                                     .face = "rest",
                                     .fingerprint_version = 2,
                                     .disk_gib = 7,
                                     .image_id = "01900000-0000-7000-8000-000000000003",
                                     .image = "it's <tiny>",
                                     .disk_path = "/images/a&b",
                                     .disk_format = "qcow2"};
  EXPECT_EQ(ParseDomain(Xml(order, Places()))->label, order.label);
  // One that is malformed is none; the rest of the label stands.
  std::string xml = Xml(order, Places());
  xml.replace(xml.find(" count='3'"), 10, " count='x'");
  const auto parsed = ParseDomain(xml);
  ASSERT_TRUE(parsed->label);
  EXPECT_FALSE(parsed->label->origin);
  order.label.origin->name = "\x01";
  EXPECT_EQ(BuildDomainXml(order, Places()).error().code, ErrorCode::kRefused);
}

TEST(DomainXml, TellsWhatAMachineIsMadeOf) {
  auto order = Order();
  ports::DomainFacts facts = ParseDomain(Xml(order, Places()))->facts;
  EXPECT_EQ(facts, (ports::DomainFacts{.cpus = 2,
                                       .memory_mib = 256,
                                       .mac = order.mac,
                                       .network = "user",
                                       .forwards = {},
                                       .kernel_path = "/boot/vm<linuz>",
                                       .initrd_path = "/boot/initrd.gz",
                                       .cmdline = order.spec.image.cmdline}));
  order.spec.network = "bridge:br0";
  EXPECT_EQ(ParseDomain(Xml(order, Places()))->facts.network, "bridge:br0");
  order.spec.network = "lan";
  EXPECT_EQ(ParseDomain(Xml(order, Places()))->facts.network, "lan");
  order.spec.network = "user";
  order.forwards = {{.guest_port = 22, .host_port = 20'022, .host_address = "127.0.0.1"},
                    {.guest_port = 53,
                     .protocol = model::Protocol::kUdp,
                     .host_port = 20'053,
                     .host_address = "0.0.0.0"}};
  facts = ParseDomain(Xml(order, Places()))->facts;
  EXPECT_EQ(facts.forwards, order.forwards);
  EXPECT_EQ(facts.mac, order.mac);
}

TEST(DomainXml, ReadsLibvirtsOwnUnitOfMemory) {
  std::string xml = Xml(Order(), Places());
  const std::string mine = "<memory unit='MiB'>256</memory>";
  xml.replace(xml.find(mine), mine.size(), "<memory unit='KiB'>524288</memory>");
  EXPECT_EQ(ParseDomain(xml)->facts.memory_mib, 512);
}

TEST(DomainXml, StartsAKernelWithItsCommandLine) {
  const std::string xml = Xml(Order(), Places());
  ASSERT_NE(ParseXml(xml), nullptr);
  EXPECT_THAT(xml, HasSubstr("<domain type='qemu'>"));
  EXPECT_THAT(xml, HasSubstr("<kernel>/boot/vm&lt;linuz&gt;</kernel>"));
  EXPECT_THAT(xml, HasSubstr("<cmdline>console=ttyS0 a=&quot;b c&quot; &amp; d</cmdline>"));
  EXPECT_THAT(xml, HasSubstr("<vcpu placement='static'>2</vcpu>"));
  EXPECT_THAT(xml, HasSubstr("<memory unit='MiB'>256</memory>"));
  EXPECT_THAT(xml, HasSubstr("<mac address='52:54:00:00:00:aa'/>"));
  EXPECT_THAT(xml, HasSubstr("<source path='/consoles/c.log' append='on'/>"));
}

TEST(DomainXml, BootsADiskImageFromItsDisk) {
  auto order = Order();
  order.spec.image = {.name = "debian", .disk_path = "/base", .disk_format = "qcow2"};
  const std::string xml = Xml(order, Places());
  EXPECT_THAT(xml, HasSubstr("<boot dev='hd'/>"));
  EXPECT_THAT(xml, Not(HasSubstr("<kernel>")));
  EXPECT_THAT(xml, HasSubstr("<source file='/disks/d'/>"));
}

TEST(DomainXml, StatesEveryFormatSoThatNoneIsProbed) {
  const std::string xml = Xml(Order(), Places());
  EXPECT_THAT(xml, HasSubstr("<driver name='qemu' type='qcow2' discard='unmap'/>"));
  EXPECT_THAT(xml, HasSubstr("<driver name='qemu' type='raw'/>"));
}

TEST(DomainXml, SaysForwardsAsQemusOwnArgument) {
  auto order = Order();
  EXPECT_THAT(Xml(order, Places()), HasSubstr("<interface type='user'>"));
  EXPECT_THAT(Xml(order, Places()), Not(HasSubstr("qemu:")));
  order.forwards = {{.guest_port = 22, .host_port = 20'022, .host_address = "127.0.0.1"},
                    {.guest_port = 53,
                     .protocol = model::Protocol::kUdp,
                     .host_port = 20'053,
                     .host_address = "0.0.0.0"}};
  const std::string xml = Xml(order, Places());
  ASSERT_NE(ParseXml(xml), nullptr);
  EXPECT_THAT(xml, Not(HasSubstr("<interface")));
  EXPECT_THAT(xml, HasSubstr("<qemu:arg value='user,id=vmonce0,hostfwd=tcp:127.0.0.1:20022-:22,"
                             "hostfwd=udp:0.0.0.0:20053-:53'/>"));
  EXPECT_THAT(xml, HasSubstr("mac=52:54:00:00:00:aa"));
  // libvirt's test driver has no QEMU to give arguments to.
  DomainPlaces test = Places();
  test.type = DomainType::kTest;
  EXPECT_THAT(Xml(order, test), HasSubstr("<interface type='user'>"));
}

TEST(DomainXml, AttachesToANetworkOrABridge) {
  auto order = Order();
  order.spec.network = "lan";
  EXPECT_THAT(Xml(order, Places()), HasSubstr("<interface type='network'><mac"));
  EXPECT_THAT(Xml(order, Places()), HasSubstr("<source network='lan'/>"));
  order.spec.network = "bridge:br0";
  EXPECT_THAT(Xml(order, Places()), HasSubstr("<interface type='bridge'><mac"));
  EXPECT_THAT(Xml(order, Places()), HasSubstr("<source bridge='br0'/>"));
}

TEST(DomainXml, SaysWhetherAHostCanKnowAddresses) {
  auto order = Order();
  EXPECT_FALSE(ParseDomain(Xml(order, Places()))->has_visible_addresses);
  order.spec.network = "lan";
  EXPECT_TRUE(ParseDomain(Xml(order, Places()))->has_visible_addresses);
  order.spec.network = "bridge:br0";
  EXPECT_TRUE(ParseDomain(Xml(order, Places()))->has_visible_addresses);
}

TEST(DomainXml, LeavesOutTheDiskOfAnImageWithoutOne) {
  DomainPlaces places = Places();
  places.disk_path.clear();
  EXPECT_THAT(Xml(Order(), places), Not(HasSubstr("dev='vda'")));
}

TEST(DomainXml, ShowsAGuestTheHostsProcessorOnlyUnderKvm) {
  DomainPlaces places = Places();
  EXPECT_THAT(Xml(Order(), places), Not(HasSubstr("host-passthrough")));
  places.type = DomainType::kKvm;
  EXPECT_THAT(Xml(Order(), places), HasSubstr("host-passthrough"));
  EXPECT_THAT(Xml(Order(), places), HasSubstr("<domain type='kvm'>"));
}

TEST(DomainXml, RefusesTextThatXmlCannotCarry) {
  auto order = Order();
  order.spec.image.cmdline =
      "a\x01"
      "b";
  EXPECT_EQ(BuildDomainXml(order, Places()).error().code, ErrorCode::kRefused);
  order = Order();
  order.label.project = {"\xff\xfe"};
  EXPECT_EQ(BuildDomainXml(order, Places()).error().code, ErrorCode::kRefused);
  EXPECT_EQ(BuildLabelXml(order.label).error().code, ErrorCode::kRefused);
}

TEST(DomainXml, ReadsALabelUnderAnyPrefix) {
  const auto parsed = ParseDomain(WithMetadata("<other xmlns='urn:x'/>" + LabelElement()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->label, Order().label);
}

TEST(DomainXml, TakesAKeylessLabel) {
  const auto parsed = ParseDomain(WithMetadata(LabelElement(std::string(64, 'a'), "")));
  ASSERT_TRUE(parsed);
  ASSERT_TRUE(parsed->label);
  EXPECT_EQ(parsed->label->key_hash, "");
}

// reports 115 and 121: what is not exactly our label is a stranger's.
TEST(DomainXml, TakesAMalformedLabelForNone) {
  const std::vector<std::pair<std::string, std::string>> faults{
      {"ledger='0123456789ab'", ""},
      {"ledger='0123456789ab'", "ledger='0123456789AB'"},
      {"ledger='0123456789ab'", "ledger='0123456789ab0'"},
      {"host='one'", "host=''"},
      {"fence='5'", "fence='-5'"},
      {"fence='5'", "fence='5x'"},
      {"fence='5'", "fence=''"},
      {"fence='5'", "fence='99999999999999999999'"},
      {"index='2'", "index='4294967296'"},
      {"sequence='77'", ""},
      {"operation='01900000", "operation='0190000"},
      {std::string(64, 'b'), std::string(63, 'b')},
      {std::string(64, 'a'), "key"},
      {"https://vmonce.dev/label/1", "https://vmonce.dev/label/2"},
      {"v:label", "v:badge"},
  };
  for (const auto& [from, to] : faults) {
    const auto parsed = ParseDomain(WithMetadata(LabelElement(from, to)));
    ASSERT_TRUE(parsed) << from;
    EXPECT_EQ(parsed->label, std::nullopt) << from << " → " << to;
  }
}

TEST(DomainXml, BelievesNeitherOfTwoLabels) {
  const auto parsed = ParseDomain(WithMetadata(LabelElement() + LabelElement("'5'", "'6'")));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->label, std::nullopt);
}

TEST(DomainXml, IgnoresALabelThatStandsElsewhere) {
  const auto parsed = ParseDomain(WithMetadata("<x xmlns='urn:x'>" + LabelElement() + "</x>"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->label, std::nullopt);
}

TEST(XmlText, TakesWhatXmlCanCarryAndItsParserReads) {
  for (const std::string text :
       {"", "a\t\r\nb", "\x7f", "\u00e4\u20ac\ue000\ufffd", "\U00010000\U0010ffff"}) {
    EXPECT_TRUE(FitsInXml(text)) << text;
    EXPECT_NE(ParseXml("<a>" + EscapeXml(text) + "</a>"), nullptr) << text;
  }
}

TEST(XmlText, RefusesWhatTheParserWouldRefuse) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {"a\0b"sv, "\x1f"sv, "\x80"sv, "\xc3"sv, "\xc3("sv, "\xc0\x80"sv, "\xe0\x94\x9a"sv,
        "\xed\xa0\x80"sv, "\xef\xbf\xbe"sv, "\xef\xbf\xbf"sv, "\xf0\x80\x80\x80"sv,
        "\xf4\x90\x80\x80"sv, "\xf8\x88\x80\x80\x80"sv}) {
    EXPECT_FALSE(FitsInXml(text)) << testing::PrintToString(text);
    EXPECT_EQ(ParseXml("<a>" + std::string(text) + "</a>"), nullptr);
  }
}

TEST(DomainXml, ReadsNothingFromWhatIsNoDomain) {
  for (const char* text :
       {"", "<domain", "<domain/>", "<network><name>n</name></network>",
        "<domain><name>n</name></domain>", "<domain><name>n</name><uuid>zz</uuid></domain>"}) {
    EXPECT_FALSE(ParseDomain(text)) << text;
  }
}

TEST(DomainXml, ResolvesNoEntitiesAndReadsNoFiles) {
  EXPECT_FALSE(
      ParseDomain("<!DOCTYPE domain [<!ENTITY e SYSTEM 'file:///etc/hostname'>]>"
                  "<domain><name>&e;</name>"
                  "<uuid>01900000-0000-7000-8000-0000000000aa</uuid></domain>"));
}

}  // namespace
}  // namespace vmonce::hypervisor
