// The kit for Octave and MATLAB: a MEX function around the C++ kit, so that the clock, the spec,
// the schedule, payloads, records and lines are the same. It uses only the MEX functions that both
// programs have. languages/octave/README.md describes the commands.
#include <mex.h>
#ifndef MATLAB_MEX_FILE
#include <octave/version.h>
#endif

#include <csignal>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "wattwire/kit.hpp"

// A MEX file is compiled for one version of Octave. wattwire_run.m compares it with the running
// version, and reads this sentence from the file if Octave cannot load the file. MATLAB checks its
// version itself.
#ifndef WATTWIRE_BUILT_WITH
#ifdef OCTAVE_VERSION
#define WATTWIRE_BUILT_WITH OCTAVE_VERSION
#else
#define WATTWIRE_BUILT_WITH ""
#endif
#endif

namespace {

using wattwire::Bytes;

const char kBuiltWith[] = "wattwire_kit was built with Octave " WATTWIRE_BUILT_WITH ".";
const char kRaised[] = "wattwire:raised";

// Octave and MATLAB free the arrays of a MEX call when the call returns, and `run` never returns.
struct Destroy {
  void operator()(mxArray* array) const { mxDestroyArray(array); }
};
using Array = std::unique_ptr<mxArray, Destroy>;

wattwire::Kit* kit = nullptr;  // null before the role starts
std::exception_ptr raised;     // the exception behind the last error with the identifier kRaised

// --- values ------------------------------------------------------------------------------------

std::string text_of(const mxArray* array) {
  if (!mxIsChar(array)) throw std::invalid_argument("wattwire_kit: allowed: a string");
  char* characters = mxArrayToString(array);
  std::string text(characters == nullptr ? "" : characters);
  mxFree(characters);
  return text;
}

wattwire::Names texts_of(const mxArray* array) {
  if (!mxIsCell(array)) throw std::invalid_argument("wattwire_kit: allowed: a cell of strings");
  wattwire::Names texts;
  for (size_t at = 0; at < mxGetNumberOfElements(array); ++at)
    texts.push_back(text_of(mxGetCell(array, at)));
  return texts;
}

// A number must be an int64, because a double represents not every time in ns.
int64_t integer_of(const mxArray* array) {
  if (!mxIsInt64(array) || mxGetNumberOfElements(array) != 1)
    throw std::invalid_argument("wattwire_kit: allowed: an int64");
  return *static_cast<const int64_t*>(mxGetData(array));
}

// A message is a row of uint8, also for text, which is then UTF-8.
bool is_message(const mxArray* array) { return mxIsUint8(array); }

Bytes bytes_of(const mxArray* array) {
  if (!is_message(array)) throw std::invalid_argument("wattwire_kit: allowed: a message of uint8");
  return Bytes(mxGetData(array), mxGetNumberOfElements(array));
}

mxArray* from(const std::string& text) { return mxCreateString(text.c_str()); }
mxArray* from(bool value) { return mxCreateLogicalScalar(value); }
mxArray* from(int64_t value) {
  mxArray* array = mxCreateNumericMatrix(1, 1, mxINT64_CLASS, mxREAL);
  std::memcpy(mxGetData(array), &value, sizeof value);
  return array;
}
mxArray* from(Bytes bytes) {
  mxArray* array = mxCreateNumericMatrix(1, bytes.size, mxUINT8_CLASS, mxREAL);
  if (bytes.size > 0) std::memcpy(mxGetData(array), bytes.data, bytes.size);
  return array;
}
mxArray* from(const wattwire::Names& texts) {
  mxArray* cell = mxCreateCellMatrix(1, texts.size());
  for (size_t at = 0; at < texts.size(); ++at) mxSetCell(cell, at, from(texts[at]));
  return cell;
}
mxArray* nothing() { return mxCreateDoubleMatrix(0, 0, mxREAL); }
mxArray* seconds(int64_t ns) { return mxCreateDoubleScalar(static_cast<double>(ns) / 1e9); }

const mxArray* field(const mxArray* table, const char* name) {
  const mxArray* value = mxGetField(table, 0, name);
  if (value == nullptr)
    throw std::invalid_argument(std::string("wattwire_kit: the field ") + name + " is missing");
  return value;
}

// Calls `action(name, value)` for each field of a structure.
template <class Action>
void each_field(const mxArray* table, Action action) {
  for (int at = 0; at < mxGetNumberOfFields(table); ++at)
    action(std::string(mxGetFieldNameByNumber(table, at)), mxGetFieldByNumber(table, 0, at));
}

// --- calls of functions of the cell ------------------------------------------------------------

// Calls a function handle, and returns its result, or an empty array without a result. Takes the
// arguments. Throws what the function has raised: an exception of this kit, or the error's message.
Array call(const mxArray* function, std::initializer_list<mxArray*> arguments, int result_count) {
  const Array count(mxCreateDoubleScalar(result_count));
  std::vector<Array> owned(arguments.begin(), arguments.end());
  std::vector<mxArray*> inputs = {count.get(), const_cast<mxArray*>(function)};
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  mxArray* outputs[2] = {nullptr, nullptr};
  const Array trapped(mexCallMATLABWithTrap(2, outputs, static_cast<int>(inputs.size()),
                                            inputs.data(), "wattwire_feval"));
  if (trapped) throw std::runtime_error("wattwire_feval failed");
  const Array problem(outputs[0]);
  Array result(outputs[1]);
  if (mxIsEmpty(problem.get())) return result;
  const wattwire::Names words = texts_of(problem.get());
  if (raised && words.at(0) == kRaised) std::rethrow_exception(raised);
  throw std::runtime_error(words.at(1));
}

// --- commands ----------------------------------------------------------------------------------

struct Arguments {
  int count;
  const mxArray* const* items;
  const mxArray* operator[](int at) const {
    if (at >= count) throw std::invalid_argument("wattwire_kit: an argument is missing");
    return items[at];
  }
};

// Returns the roles of a structure that maps their names to functions of the cell.
wattwire::Roles roles_of(const mxArray* table) {
  wattwire::Roles roles;
  each_field(table, [&](const std::string& name, const mxArray* role) {
    roles[name] = [role](wattwire::Kit& opened) {
      kit = &opened;
      call(role, {}, 0);
    };
  });
  return roles;
}

// Runs the node and ends the process; the arguments are the command line and the roles.
mxArray* run(const Arguments& arguments) {
  // The interpreter's handlers of these signals wait until the running function returns.
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  wattwire::Names words = texts_of(arguments[0]);
  words.insert(words.begin(), "node");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  wattwire::run(static_cast<int>(argv.size()), argv.data(), roles_of(arguments[1]));
}

wattwire::Scalar scalar_of(const mxArray* value) {
  if (mxIsChar(value)) return text_of(value);
  if (mxIsLogical(value)) return mxIsLogicalScalarTrue(value);
  return integer_of(value);
}

mxArray* ready(const Arguments& arguments) {
  const mxArray* table = arguments[0];
  wattwire::Ready ready;
  const wattwire::Names library = texts_of(field(table, "library"));
  const wattwire::Names guarantee = texts_of(field(table, "guarantee"));
  ready.library = {library.at(0), library.at(1), library.at(2)};
  ready.guarantee = {guarantee.at(0), guarantee.at(1), guarantee.at(2)};
  if (const mxArray* matched = mxGetField(table, 0, "matched")) ready.matched = integer_of(matched);
  if (const mxArray* discovery_ns = mxGetField(table, 0, "discovery_ns"))
    ready.discovery_ns = integer_of(discovery_ns);
  each_field(field(table, "effective"), [&](const std::string& name, const mxArray* value) {
    ready.effective[name] = scalar_of(value);
  });
  kit->ready(ready);
  return nothing();
}

// Returns a function of the C++ kit's type that polls with a function of the cell.
auto poller(const mxArray* poll) {
  return [poll](int64_t timeout_ns) { call(poll, {seconds(timeout_ns)}, 0); };
}

// Returns a function that calls a function of the cell and returns the reply, or nullopt. The reply
// is valid until the next call.
auto caller(const mxArray* function) {
  return [function, reply = std::make_shared<Array>()](Bytes buffer,
                                                       int64_t timeout_ns) -> std::optional<Bytes> {
    *reply = call(function, {from(buffer), seconds(timeout_ns)}, 1);
    if (!is_message(reply->get())) return std::nullopt;
    return bytes_of(reply->get());
  };
}

mxArray* await_peers(const Arguments& arguments) {
  const mxArray* count = arguments[0];
  return from(kit->await_peers([count] { return integer_of(call(count, {}, 1).get()); },
                               poller(arguments[1])));
}

mxArray* send_all(const Arguments& arguments) {
  const mxArray* send = arguments[0];
  kit->send_all([send](Bytes buffer) {
    call(send, {from(buffer)}, 0);
    return true;
  });
  return nothing();
}

mxArray* serve(const Arguments& arguments) {
  const std::optional<Bytes> reply = kit->serve(bytes_of(arguments[0]));
  return reply ? from(*reply) : nothing();
}

mxArray* integer(const Arguments& arguments) {
  const std::string key = text_of(arguments[0]);
  if (arguments.count == 1) return from(kit->integer(key));
  return from(kit->integer(key, integer_of(arguments[1]), integer_of(arguments[2])));
}

using Command = mxArray* (*)(const Arguments&);

// Commands before the role starts.
const std::map<std::string, Command> kOpening = {
    {"built_with", [](const Arguments&) { return mxCreateString(kBuiltWith); }},
    {"run", run},
};

const std::map<std::string, Command> kCommands = {
    {"string", [](const Arguments& a) { return from(kit->string(text_of(a[0]))); }},
    {"integer", integer},
    {"boolean", [](const Arguments& a) { return from(kit->boolean(text_of(a[0]))); }},
    {"strings", [](const Arguments& a) { return from(kit->strings(text_of(a[0]))); }},
    {"text", [](const Arguments&) { return from(kit->text()); }},
    {"sending_topic", [](const Arguments&) { return from(kit->sending_topic()); }},
    {"receiving_topic", [](const Arguments&) { return from(kit->receiving_topic()); }},
    {"now_ns", [](const Arguments&) { return from(wattwire::now_ns()); }},
    {"await_peers", await_peers},
    {"probe", [](const Arguments& a) { return from(kit->probe(caller(a[0]))); }},
    {"ready", ready},
    {"send_all", send_all},
    {"call_all", [](const Arguments& a) { return kit->call_all(caller(a[0])), nothing(); }},
    {"is_reply", [](const Arguments& a) { return from(kit->is_reply(bytes_of(a[0]))); }},
    {"received", [](const Arguments& a) { return kit->received(bytes_of(a[0])), nothing(); }},
    {"serve", serve},
    {"served", [](const Arguments&) { return kit->served(), nothing(); }},
    {"poll", [](const Arguments& a) { return kit->poll(poller(a[0])), nothing(); }},
    {"unsupported",
     [](const Arguments& a) -> mxArray* { throw wattwire::Unsupported(text_of(a[0])); }},
    {"send_failed",
     [](const Arguments& a) -> mxArray* { throw wattwire::SendFailed(text_of(a[0])); }},
    {"bad_spec",
     [](const Arguments& a) -> mxArray* {
       throw wattwire::BadSpec(text_of(a[0]), text_of(a[1]), text_of(a[2]));
     }},
};

mxArray* execute(const Arguments& words) {
  const std::string name = text_of(words[0]);
  const Arguments arguments{words.count - 1, words.items + 1};
  if (const auto command = kOpening.find(name); command != kOpening.end())
    return command->second(arguments);
  const auto command = kCommands.find(name);
  if (command == kCommands.end())
    throw std::invalid_argument("wattwire_kit: unknown command \"" + name + '"');
  if (kit == nullptr)
    throw std::invalid_argument("wattwire_kit: the command " + name + " requires a running role");
  return command->second(arguments);
}

// Returns whether the command succeeded. If not, `reason` is set, and `raised` is its exception.
bool succeeded(mxArray** result, const Arguments& words, char (&reason)[2000]) {
  try {
    *result = execute(words);
    return true;
  } catch (const std::exception& error) {
    raised = std::current_exception();
    std::snprintf(reason, sizeof reason, "%s", error.what());
    return false;
  }
}

}  // namespace

void mexFunction(int, mxArray* results[], int count, const mxArray* items[]) {
  static char reason[2000];
  // mexErrMsgIdAndTxt jumps out of this function, which therefore owns no object.
  if (!succeeded(&results[0], {count, items}, reason)) mexErrMsgIdAndTxt(kRaised, "%s", reason);
}
