using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Wattwire {
    public sealed partial class Spec {
        const string SettingPrefix = "settings.", AllowedPrefix = "declared.allowed.";

        public Settings Settings { get; private set; }

        /// Reads a spec. The harness has checked its values; the node checks that keys are known
        /// and have the right types (C-02).
        public static Spec Read(string path) {
            JObject json;
            try {
                // Strings that look like dates remain strings.
                using (var reader = new JsonTextReader(File.OpenText(path)) {
                    DateParseHandling = DateParseHandling.None })
                    json = JObject.Load(reader);
            } catch (Exception error) when (error is IOException || error is JsonException) {
                throw new NodeError(ExitCode.BadSpec, $"{path}: {error.Message}", "--spec");
            }

            var keys = new KeyReader(json);
            long contract = keys.Integer("contract");
            if (contract != Constants.Version)
                throw KeyReader.Refused("contract", $"{contract}", $"{Constants.Version}");
            var spec = new Spec();
            spec.ReadKeys(keys);
            CheckAddress("host.address", spec.HostAddress);
            foreach (string address in spec.PeersAddresses)
                CheckAddress("peers.addresses", address);
            spec.ReadSettings(keys);
            foreach (string key in json.Properties().Select(property => property.Name))
                if (!keys.Known.Contains(key))
                    throw KeyReader.Refused(key, "an unknown key", string.Join(", ", keys.Known));
            return spec;
        }

        /// Reads the declared settings, and notes those with a value that is not supported.
        void ReadSettings(KeyReader keys) {
            var values = new Dictionary<string, object>();
            foreach (string name in DeclaredStringSettings)
                values[name] = keys.Text(SettingPrefix + name);
            foreach (string name in DeclaredIntegerSettings)
                values[name] = keys.Integer(SettingPrefix + name);
            foreach (string name in DeclaredBooleanSettings)
                values[name] = keys.Flag(SettingPrefix + name);
            var unsupported = new List<string>();
            foreach (var setting in values) {
                object[] allowed = keys.Scalars(AllowedPrefix + setting.Key);
                if (allowed != null && !allowed.Contains(setting.Value))
                    unsupported.Add($"{setting.Key} = {setting.Value} "
                        + $"(supported: {string.Join(", ", allowed)})");
            }
            Settings = new Settings(values, unsupported);
        }

        /// Refuses a text that is no IPv4 address in dotted decimal notation (C-38). TryParse also
        /// accepts other notations, which the address does not print.
        static void CheckAddress(string key, string text) {
            bool isAddress = IPAddress.TryParse(text, out IPAddress address)
                && address.AddressFamily == AddressFamily.InterNetwork
                && address.ToString() == text;
            if (!isAddress)
                throw KeyReader.Refused(key, text, "an IPv4 address");
        }
    }

    /// Reads the values of a spec by key and type.
    sealed class KeyReader {
        readonly JObject json;

        /// The keys that were read.
        public readonly HashSet<string> Known = new HashSet<string>();

        public KeyReader(JObject json) {
            this.json = json;
        }

        public string Text(string key) => (string)Value(key, JTokenType.String);
        public long Integer(string key) => (long)Value(key, JTokenType.Integer);

        public string[] Texts(string key) =>
            Items(key, JTokenType.String).Select(item => (string)item).ToArray();

        public long[] Integers(string key) =>
            Items(key, JTokenType.Integer).Select(item => (long)item).ToArray();

        public bool Flag(string key) => (bool)Value(key, JTokenType.Boolean);

        /// Returns the items of a list, or null if the key is missing.
        public object[] Scalars(string key) {
            Known.Add(key);
            if (json[key] == null)
                return null;
            return Value(key, JTokenType.Array).Select(item => (item as JValue)?.Value).ToArray();
        }

        public static NodeError Refused(string key, string found, string allowed) =>
            new NodeError(ExitCode.BadSpec, $"{key}: found {found}; allowed: {allowed}", key);

        JToken Value(string key, JTokenType type) {
            Known.Add(key);
            JToken value = json[key];
            return value?.Type == type ? value : throw Refused(key, $"{value}", $"{type}");
        }

        IEnumerable<JToken> Items(string key, JTokenType type) {
            JToken list = Value(key, JTokenType.Array);
            return list.All(item => item.Type == type)
                ? list : throw Refused(key, $"{list}", $"a list of {type}");
        }
    }

    /// The values of the middleware's settings, by name.
    public sealed class Settings {
        readonly IDictionary<string, object> values;

        /// `unsupported` describes the values that the cell does not support.
        internal Settings(IDictionary<string, object> values, IEnumerable<string> unsupported) {
            this.values = values;
            Unsupported = unsupported;
        }

        internal IDictionary<string, object> Requested => values;
        internal IEnumerable<string> Unsupported { get; }
        public string Text(string name) => Get<string>(name);
        public long Integer(string name) => Get<long>(name);
        public bool Flag(string name) => Get<bool>(name);

        T Get<T>(string name) {
            values.TryGetValue(name, out object value);
            if (value is T)
                return (T)value;
            throw KeyReader.Refused("settings." + name, $"{value}", typeof(T).Name);
        }
    }
}
