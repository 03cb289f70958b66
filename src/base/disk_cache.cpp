#include "base/disk_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/log.h"

namespace pg {
namespace {

namespace fs = std::filesystem;

constexpr int kApplicationId = 0x70616E67;                      // "pang", marks the file as ours
constexpr auto kPatience = std::chrono::milliseconds(1000);     // with other processes that hold a lock
constexpr auto kTouchInterval = std::chrono::seconds(60 * 60);  // how exactly the time of use is kept

// A result of SQLite that is not a success. Never leaves this file.
struct Failure {
  int code;  // primary
  std::string message;
};

int64_t now() {
  auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

std::string_view key_bytes(const Digest& key) {
  static_assert(sizeof(Digest) == 16 && std::has_unique_object_representations_v<Digest>);
  return {reinterpret_cast<const char*>(&key), sizeof(Digest)};
}

// Holds an exclusive lock between processes: on a file beside the cache, since the cache itself may be
// replaced.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) throw Failure{SQLITE_CANTOPEN, "cannot open " + path};
    auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        close(file_);
        throw Failure{SQLITE_CANTOPEN, "another process holds " + path};
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  ~FileLock() { close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

ino_t inode_of(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Makes room for a new database. The broken one is kept, under another name: CACHEDB may name a file that was
// never ours.
void set_aside(const std::string& path) {
  std::error_code ignored;
  fs::rename(path, path + ".broken", ignored);
  fs::remove(path + "-wal", ignored);
  fs::remove(path + "-shm", ignored);
}

// One use of a prepared statement: bind, step through the rows; reset at the end.
class Query {
 public:
  Query(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  ~Query() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // What is bound must outlive the query.
  Query& text(int place, std::string_view value) {
    return check(sqlite3_bind_text(statement_, place, value.data(), size(value), SQLITE_STATIC));
  }
  Query& blob(int place, std::string_view value) {
    const char* data = value.empty() ? "" : value.data();  // a null pointer would be bound as NULL
    return check(sqlite3_bind_blob(statement_, place, data, size(value), SQLITE_STATIC));
  }
  Query& number(int place, int64_t value) { return check(sqlite3_bind_int64(statement_, place, value)); }

  /// Steps to the next row; false at the end.
  bool step() {
    int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
    return code == SQLITE_ROW;
  }

  /// Steps to the end.
  void run() {
    while (step()) {
    }
  }

  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string blob(int column) const {
    const char* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    auto length = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
    return data ? std::string(data, length) : std::string();
  }

 private:
  static int size(std::string_view value) { return static_cast<int>(value.size()); }

  Query& check(int code) {
    if (code != SQLITE_OK) throw Failure{code & 0xff, sqlite3_errmsg(db_)};
    return *this;
  }

  sqlite3* db_;
  sqlite3_stmt* statement_;
};

}  // namespace

// An open database and its statements.
class DiskCache::Connection {
 public:
  explicit Connection(const std::string& path) {
    try {
      check(sqlite3_open_v2(path.c_str(), &db_,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr));
      sqlite3_busy_timeout(db_, static_cast<int>(kPatience.count()));
      claim();
      // Losing the last entries, or some bytes of them, to a power cut is fine: every entry has a checksum.
      execute("PRAGMA synchronous=OFF");
      execute("PRAGMA journal_size_limit=16777216");
      get_ = prepare("SELECT id, checksum, used, value FROM entries WHERE kind=?1 AND key=?2");
      touch_ = prepare("UPDATE entries SET used=?2 WHERE id=?1");
      erase_ = prepare("DELETE FROM entries WHERE id=?1");
      put_ = prepare(
          "INSERT INTO entries(kind, key, checksum, used, value) VALUES(?1, ?2, ?3, ?4, ?5) ON "
          "CONFLICT(kind, key) "
          "DO UPDATE SET checksum=excluded.checksum, used=excluded.used, value=excluded.value");
      usage_ = prepare(
          "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM "
          "pragma_freelist_count),"
          " (SELECT page_size FROM pragma_page_size)");
      count_ = prepare("SELECT count(*) FROM entries");
      drop_ = prepare("DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY used, id LIMIT ?1)");
    } catch (...) {
      close();
      throw;
    }
    inode_ = inode_of(path);
  }
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  ino_t inode() const { return inode_; }

  std::optional<std::string> get(std::string_view table, const Digest& key) {
    int64_t id = 0;
    int64_t used = 0;
    std::string bytes;
    bool whole = false;
    {
      Query query(db_, get_);
      if (!query.text(1, table).blob(2, key_bytes(key)).step()) return std::nullopt;
      id = query.number(0);
      used = query.number(2);
      bytes = query.blob(3);
      whole = query.number(1) == checksum(key, bytes);
    }
    if (!whole) {
      Query(db_, erase_).number(1, id).run();
      log(LogLevel::Summary, "disk cache: dropped a damaged entry of {}", table);
      return std::nullopt;
    }
    if (now() - used > kTouchInterval.count()) Query(db_, touch_).number(1, id).number(2, now()).run();
    return bytes;
  }

  void put(std::string_view table, const Digest& key, std::string_view bytes) {
    Query(db_, put_)
        .text(1, table)
        .blob(2, key_bytes(key))
        .number(3, checksum(key, bytes))
        .number(4, now())
        .blob(5, bytes)
        .run();
  }

  int64_t bytes() {
    Query query(db_, usage_);
    query.step();
    return query.number(0) * query.number(1);
  }

  int64_t entries() {
    Query query(db_, count_);
    query.step();
    return query.number(0);
  }

  void trim(int64_t limit) {
    // In batches, because only deleting tells how much of the file an entry took.
    constexpr int64_t kBatches = 8;
    for (int64_t left = entries(); left > 0 && (limit == 0 || bytes() > limit); left = entries()) {
      Query(db_, drop_).number(1, limit == 0 ? left : (left + kBatches - 1) / kBatches).run();
    }
    execute("PRAGMA incremental_vacuum");
  }

 private:
  static int64_t checksum(const Digest& key, std::string_view bytes) {
    return static_cast<int64_t>(hash_bytes(bytes, key.low));
  }

  // Takes an empty database, or one that is ours. A database of somebody else is left alone.
  void claim() {
    int64_t owner = 0;
    int64_t tables = 0;
    run("SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)",
        [&](const Query& row) {
          owner = row.number(0);
          tables = row.number(1);
        });
    if (owner != kApplicationId && tables > 0)
      throw Failure{SQLITE_CANTOPEN, "the database belongs to another program"};
    if (owner != kApplicationId) {
      execute("PRAGMA auto_vacuum=INCREMENTAL");  // before the first table, or without effect
      execute("PRAGMA application_id=" + std::to_string(kApplicationId));
    }
    execute("PRAGMA journal_mode=WAL");
    // A change of this table takes a new name, so that versions of pangrad can share the file.
    execute(
        "CREATE TABLE IF NOT EXISTS entries(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL, "
        "checksum INTEGER NOT NULL, used INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE(kind, key))");
  }

  template <typename Function>
  void run(const std::string& sql, Function&& each_row) {
    std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepare(sql, 0), sqlite3_finalize);
    Query query(db_, statement.get());
    while (query.step()) each_row(query);
  }

  void execute(const std::string& sql) {
    run(sql, [](const Query&) {});
  }

  sqlite3_stmt* prepare(const std::string& sql, unsigned flags = SQLITE_PREPARE_PERSISTENT) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(db_, sql.c_str(), -1, flags, &statement, nullptr));
    return statement;
  }

  void check(int code) const {
    if (code != SQLITE_OK) throw Failure{code & 0xff, db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(code)};
  }

  void close() {
    for (sqlite3_stmt* statement : {get_, touch_, erase_, put_, usage_, count_, drop_})
      sqlite3_finalize(statement);
    sqlite3_close(db_);
  }

  sqlite3* db_ = nullptr;
  ino_t inode_ = 0;
  sqlite3_stmt* get_ = nullptr;
  sqlite3_stmt* touch_ = nullptr;
  sqlite3_stmt* erase_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* usage_ = nullptr;
  sqlite3_stmt* count_ = nullptr;
  sqlite3_stmt* drop_ = nullptr;
};

// What all caches of this process share: the lock they are used under, and which of them are open. SQLite's
// handles, and its locks on files, must not pass through a fork, so a fork waits for the lock and closes what
// is open; parent and child open it again when they need it.
struct DiskCache::Process {
  std::mutex mutex;
  std::set<DiskCache*> open;
  std::map<std::string, DiskCache> by_path;  // of disk_cache()

  // Never destroyed: threads may still compile while the process exits.
  static Process& get() {
    static Process& instance = *create();
    return instance;
  }

 private:
  static Process* create() {
    pthread_atfork(
        [] {
          get().mutex.lock();
          for (DiskCache* cache : get().open) cache->connection_.reset();
          get().open.clear();
        },
        [] { get().mutex.unlock(); }, [] { get().mutex.unlock(); });
    return new Process;
  }
};

namespace {

bool is_corrupt(int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }

std::string absolute(std::string_view path) {
  std::error_code failed;
  fs::path result = fs::absolute(path, failed);  // so that no name has a meaning of its own to SQLite
  return path.empty() || failed ? std::string(path) : result.string();
}

std::string default_path() {
  fs::path folder = flags::xdg_cache_home();
  if (!folder.is_absolute()) {  // as the XDG specification has it
    if (flags::home().empty()) return "";
    folder = fs::path(flags::home()) / ".cache";
  }
  return folder / "pangrad" / "cache.db";
}

}  // namespace

DiskCache::DiskCache(std::string_view path, int64_t cap)
    : path_(absolute(path)), cap_(cap), disabled_(path.empty()) {}

DiskCache::~DiskCache() {
  std::lock_guard lock(Process::get().mutex);
  Process::get().open.erase(this);
  connection_.reset();
}

// Runs a function on the open database. Nothing that goes wrong leaves this one.
template <typename Function>
void DiskCache::attempt(Function&& function) {
  DeferLog after_the_lock;
  std::lock_guard lock(Process::get().mutex);
  if (disabled_) return;
  try {
    if (!connection_) open();
    function(*connection_);
  } catch (const Failure& failure) {
    recover(failure.code, failure.message);
  } catch (const std::exception& e) {
    disable(e.what());
  }
}

void DiskCache::open() {
  fs::create_directories(fs::path(path_).parent_path());
  FileLock lock(path_ + ".lock");
  try {
    connection_ = std::make_unique<Connection>(path_);
  } catch (const Failure& failure) {
    if (!is_corrupt(failure.code) || rebuilt_) throw;
    log(LogLevel::Summary, "disk cache: {} is damaged ({}), starting a new one", path_, failure.message);
    rebuilt_ = true;
    set_aside(path_);
    connection_ = std::make_unique<Connection>(path_);
  }
  Process::get().open.insert(this);
}

void DiskCache::recover(int code, std::string_view message) {
  if (!connection_) return disable(message);
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
    return log(LogLevel::Summary, "disk cache: {}, going on without", message);
  }
  if (!is_corrupt(code) || rebuilt_) return disable(message);
  log(LogLevel::Summary, "disk cache: {} is damaged ({}), starting a new one", path_, message);
  rebuilt_ = true;
  ino_t damaged = connection_->inode();
  Process::get().open.erase(this);
  connection_.reset();
  try {
    FileLock lock(path_ + ".lock");
    if (inode_of(path_) == damaged) set_aside(path_);  // unless another process was faster
  } catch (const Failure& failure) {
    disable(failure.message);
  }
}

void DiskCache::disable(std::string_view reason) {
  log(LogLevel::Summary, "disk cache: {} is not used: {}", path_, reason);
  Process::get().open.erase(this);
  connection_.reset();
  disabled_ = true;
}

std::optional<std::string> DiskCache::get(std::string_view table, const Digest& key) {
  std::optional<std::string> found;
  attempt([&](Connection& connection) { found = connection.get(table, key); });
  return found;
}

void DiskCache::put(std::string_view table, const Digest& key, std::string_view bytes) {
  constexpr int64_t kLargest = int64_t{1} << 29;  // SQLite takes no blob above 10^9 bytes
  if (static_cast<int64_t>(bytes.size()) > std::min(cap_ / 4, kLargest)) return;
  attempt([&](Connection& connection) {
    connection.put(table, key, bytes);
    if (connection.bytes() > cap_) connection.trim(cap_ / 4 * 3);
  });
}

DiskCache::Usage DiskCache::usage() {
  Usage result;
  attempt([&](Connection& connection) {
    result = {.entries = connection.entries(), .bytes = connection.bytes()};
  });
  return result;
}

void DiskCache::trim(int64_t bytes) {
  attempt([&](Connection& connection) { connection.trim(bytes); });
}

DiskCache& disk_cache() {
  std::string path = flags::cache() < 2 ? "" : flags::cachedb().empty() ? default_path() : flags::cachedb();
  std::lock_guard lock(DiskCache::Process::get().mutex);
  return DiskCache::Process::get().by_path.try_emplace(path, path).first->second;
}

}  // namespace pg
