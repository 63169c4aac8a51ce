#include "client/curl_transport.h"

#include <curl/curl.h>
#include <openssl/ssl.h>

#include <system_error>

#include "base/check.h"

namespace vmonce::client {
namespace {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using HeaderList = std::unique_ptr<curl_slist, HeadersDeleter>;

// What libcurl's callbacks write to while one call runs.
struct Sink {
  HttpResponse response;
  std::size_t max_bytes = 0;
  bool is_too_large = false;
  char words[CURL_ERROR_SIZE] = "";

  // What libcurl says of this failure, for people.
  std::string WordsOr(const std::string& general) const { return words[0] == 0 ? general : words; }
};

std::size_t TakeBody(char* data, std::size_t size, std::size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  if (sink.response.body.size() + size * count > sink.max_bytes) {
    sink.is_too_large = true;
    return 0;
  }
  sink.response.body.append(data, size * count);
  return size * count;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::size_t TakeHeader(char* data, std::size_t size, std::size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  const std::string_view line(data, size * count);
  // A new status line begins a new set: what came with an interim answer (100) is not the answer's.
  if (line.starts_with("HTTP/")) sink.response.headers.clear();
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  sink.response.headers.emplace_back(std::move(name), Trimmed(line.substr(colon + 1)));
  return line.size();
}

HeaderList MakeHeaders(const HttpRequest& request) {
  curl_slist* list = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : request.headers) {
    list = curl_slist_append(list, fmt::format("{}: {}", name, value).c_str());
  }
  return HeaderList(list);
}

// The server ended the session over the client's certificate, or its absence (RFC 8446 section 6.2;
// RFC 5246 section 7.2.2). It does so before it reads a request.
bool IsAboutCertificates(int alert) {
  switch (alert) {
    case SSL3_AD_BAD_CERTIFICATE:
    case SSL3_AD_UNSUPPORTED_CERTIFICATE:
    case SSL3_AD_CERTIFICATE_REVOKED:
    case SSL3_AD_CERTIFICATE_EXPIRED:
    case SSL3_AD_CERTIFICATE_UNKNOWN:
    case TLS1_AD_UNKNOWN_CA:
    case TLS1_AD_ACCESS_DENIED:
    case TLS13_AD_CERTIFICATE_REQUIRED: return true;
    default: return false;
  }
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(CurlOptions options) : options_(std::move(options)) {
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    multi_ = curl_multi_init();
    CHECK(multi_ != nullptr);
  }
  ~CurlTransport() override {
    curl_multi_cleanup(multi_);
    curl_global_cleanup();
  }

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    const Easy easy(curl_easy_init());
    CHECK(easy != nullptr);
    const HeaderList headers = MakeHeaders(request);
    Sink sink;
    sink.max_bytes = options_.max_answer_bytes;
    alert_ = 0;
    Prepare(easy.get(), request, headers.get(), sink);
    const std::optional<CURLcode> code = Perform(easy.get(), stop);
    if (!code) return Fail(ErrorCode::kUnknown, "interrupted");
    if (*code != CURLE_OK && IsAboutCertificates(alert_)) {
      return Fail(ErrorCode::kRefused, fmt::format("the server does not accept the client's "
                                                   "certificate: {}",
                                                   SSL_alert_desc_string_long(alert_)));
    }
    if (*code != CURLE_OK) return std::unexpected(ErrorOf(easy.get(), *code, sink));
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    sink.response.status = static_cast<int>(status);
    return std::move(sink.response);
  }

 private:
  // Watches for the alerts that libcurl tells as texts alone.
  static CURLcode WatchAlerts(CURL*, void* context, void* self) {
    auto* const tls = static_cast<SSL_CTX*>(context);
    SSL_CTX_set_app_data(tls, self);
    SSL_CTX_set_info_callback(tls, [](const SSL* session, int where, int value) {
      if (where != SSL_CB_READ_ALERT) return;
      void* const watcher = SSL_CTX_get_app_data(SSL_get_SSL_CTX(session));
      static_cast<CurlTransport*>(watcher)->alert_ = value & 0xff;
    });
    return CURLE_OK;
  }

  void PrepareTls(CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, &WatchAlerts);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, this);
    const TlsIdentity& tls = options_.tls;
    if (!tls.ca_file.empty()) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, tls.ca_file.c_str());
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    if (tls.certificate.empty()) return;
    curl_easy_setopt(easy, CURLOPT_SSLCERT, tls.certificate.c_str());
    curl_easy_setopt(easy, CURLOPT_SSLKEY, tls.key.c_str());
    // A key behind a passphrase fails; OpenSSL would ask the terminal.
    curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
  }

  void Prepare(CURL* easy, const HttpRequest& request, curl_slist* headers, Sink& sink) {
    const auto ms = static_cast<long>(request.deadline.count());
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    PrepareTls(easy);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_USERAGENT, options_.user_agent.c_str());
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     std::min(ms, static_cast<long>(options_.connect_timeout.count())));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &TakeBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &TakeHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &sink);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, sink.words);
    if (request.method == "GET") return;
    // On a kept connection that turns out dead, libcurl sends again by itself. Whether a change is
    // sent again is decided above this door, so it never goes over a kept connection.
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    if (request.method == "POST" || !request.body.empty()) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  // Nothing when it was stopped.
  std::optional<CURLcode> Perform(CURL* easy, std::stop_token stop) {
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_); });
    CHECK(curl_multi_add_handle(multi_, easy) == CURLM_OK);
    int running = 1;
    while (running > 0 && !stop.stop_requested()) {
      if (curl_multi_perform(multi_, &running) != CURLM_OK) break;
      if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1'000, nullptr);
    }
    std::optional<CURLcode> code;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->easy_handle == easy) code = message->data.result;
    }
    curl_multi_remove_handle(multi_, easy);
    if (!code && !stop.stop_requested()) return CURLE_RECV_ERROR;
    return code;
  }

  static Error ErrorOf(CURL* easy, CURLcode code, const Sink& sink) {
    if (sink.is_too_large) {
      return Error{ErrorCode::kInvalid, "the answer is larger than this client reads"};
    }
    // The time at which the request could begin to be sent; zero when it never came so far.
    curl_off_t sending_us = 0;
    curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &sending_us);
    const std::string text = curl_easy_strerror(code);
    switch (code) {
      case CURLE_URL_MALFORMAT: return Error{ErrorCode::kInvalid, "the URL is malformed"};
      case CURLE_UNSUPPORTED_PROTOCOL:
        return Error{ErrorCode::kInvalid, "only http:// and https:// URLs are supported"};
      // Before anything was sent.
      case CURLE_PEER_FAILED_VERIFICATION:
        return Error{
            ErrorCode::kRefused,
            fmt::format("the server's certificate is not believed: {}", sink.WordsOr(text))};
      case CURLE_SSL_CACERT_BADFILE:
        return Error{ErrorCode::kRefused,
                     "the file of certificate authorities cannot be used: " + sink.WordsOr(text)};
      case CURLE_SSL_CERTPROBLEM:
        return Error{ErrorCode::kRefused,
                     "the client's own certificate or key cannot be used: " + sink.WordsOr(text)};
      case CURLE_SSL_CONNECT_ERROR:
        return Error{ErrorCode::kUnavailable, "TLS could not begin: " + sink.WordsOr(text)};
      case CURLE_COULDNT_RESOLVE_HOST: return Error{ErrorCode::kUnavailable, text};
      case CURLE_COULDNT_CONNECT: {
        long number = 0;
        curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
        const std::error_code why(static_cast<int>(number), std::generic_category());
        return Error{ErrorCode::kUnavailable, number == 0 ? text : why.message()};
      }
      case CURLE_OPERATION_TIMEDOUT:
        if (sending_us == 0) return Error{ErrorCode::kUnavailable, "no connection in time"};
        return Error{ErrorCode::kUnknown, "no answer in time"};
      // Every other code of libcurl may stand for a request that had already left.
      default: return Error{ErrorCode::kUnknown, text};
    }
  }

  const CurlOptions options_;
  CURLM* multi_ = nullptr;
  int alert_ = 0;  // The last one that the server sent during this call; 0 is none of its errors.
};

}  // namespace

std::unique_ptr<Transport> NewCurlTransport(CurlOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace vmonce::client
