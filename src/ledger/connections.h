// The connections to one ledger file: one that writes, a few that read, and one that checkpoints
// beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/threads.h"
#include "ledger/hot_vms.h"
#include "ledger/sqlite_db.h"

namespace vmonce::ledger {

struct ConnectionOptions {
  std::string path;  // Empty: in memory, with the writer alone.
  int readers = 1;
  int page_cache_kib = 0;
  int max_pages = 0;  // Of the file; zero: no bound.
  bool has_checkpoint_thread = false;
};

// Thread-safe but for the writer, which one caller at a time may use.
class Connections {
 public:
  // `writer` is open and its schema is up to date.
  Connections(ConnectionOptions options, std::unique_ptr<Db> writer, Threads& threads,
              Logger& logger);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Sets the writer up; to be called once, before anything else.
  Status Start();

  bool HasReaders() const { return !options_.path.empty(); }

  // Runs `work` on a reading connection: one consistent snapshot. Precondition: HasReaders().
  // kUnavailable when no connection can be opened, at once when IsBroken(); otherwise what stuck to
  // the connection.
  Status Read(const std::function<void(Db&)>& work);

  // What the writer has written last.
  HotVms& hot_vms() { return hot_vms_; }

  // The writer, opened anew when it was distrusted.
  Result<Db*> Writer();
  // After an error at COMMIT: what the connections would show and what the file will say after a
  // crash may differ, so all of them are closed before the next use of any. Readers wait from here
  // on: the caller asks for the Writer() once more before it rests.
  void Distrust();
  // After Distrust() nothing could be opened anew (the disk may still be full): only the next
  // Writer() can change that. Thread-safe.
  bool IsBroken() const;
  // To be called by the user of the writer between transactions.
  void KeepLogShort();

 private:
  Result<std::unique_ptr<Db>> OpenReader();
  Result<std::unique_ptr<Db>> TakeReader();
  void GiveBack(std::unique_ptr<Db> reader);
  void CloseAll();
  Status OpenWriterAnew();
  void CheckpointUntilStopped();
  void CheckpointOnce();
  static int NoteLogSize(void* self, sqlite3* db, const char* name, int pages);

  const ConnectionOptions options_;
  Threads& threads_;
  Logger& logger_;
  HotVms hot_vms_;
  std::unique_ptr<Db> writer_;
  bool is_distrusted_ = false;  // The writer's user's own.

  std::unique_ptr<Monitor> monitor_;
  std::vector<std::unique_ptr<Db>> idle_ GUARDED_BY(*monitor_);
  int out_ GUARDED_BY(*monitor_) = 0;      // Connections in use beside the writer.
  int waiting_ GUARDED_BY(*monitor_) = 0;  // For a reader, or for all of them.
  bool is_closing_ GUARDED_BY(*monitor_) = false;
  bool is_broken_ GUARDED_BY(*monitor_) = false;
  bool is_stopping_ GUARDED_BY(*monitor_) = false;
  int log_pages_ GUARDED_BY(*monitor_) = 0;
  int checkpointed_pages_ GUARDED_BY(*monitor_) = 0;
  std::unique_ptr<Db> checkpointer_;  // The checkpoint thread's; closed only while that is waiting.
  std::unique_ptr<Thread> checkpoint_thread_;
};

}  // namespace vmonce::ledger
