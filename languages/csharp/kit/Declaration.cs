using System.Collections.Generic;
using System.Linq;

namespace Wattwire {
    /// Rejects a spec that requires something that it does not declare (C-03).
    static class Declaration {
        /// Checks the spec; `roles` are those for which the cell has a function.
        public static void Check(Spec spec, ICollection<string> roles) {
            List<string> lacking = Required(spec).Except(spec.DeclaredCapabilities).ToList();
            if (!roles.Contains(spec.Role) || !spec.DeclaredRoles.Contains(spec.Role))
                lacking.Add("role " + spec.Role);
            lacking.AddRange(UnsupportedSizes(spec));
            lacking.AddRange(spec.Settings.Unsupported);
            if (lacking.Count > 0)
                throw new NodeError(ExitCode.Unsupported,
                    $"{string.Join(", ", lacking)}; this cell has "
                    + string.Join(", ", spec.DeclaredCapabilities));
        }

        static IEnumerable<string> Required(Spec spec) {
            yield return "encoding." + spec.PayloadEncoding;
            yield return "loop." + spec.Loop;
            yield return "pacing." + spec.Pacing;
            bool isTopic = spec.Pattern == "topic";
            if (!isTopic)
                yield return "reply." + spec.Reply;
            if (spec.PayloadLiteral != "")
                yield return "literal";
            bool isCaller = Constants.SendingRoles.Contains(spec.Role) && !isTopic;
            if (isCaller && spec.Loop == "open" && spec.OutstandingMax > 1)
                yield return "async_client";
        }

        static IEnumerable<string> UnsupportedSizes(Spec spec) {
            long least = spec.DeclaredPayloadBytesMin, most = spec.DeclaredPayloadBytesMax;
            if (spec.PayloadEncoding == "text")
                least *= 2;
            if (spec.PayloadEncoding == "record") {
                least = 0;
                most = spec.DeclaredRecordBytesMax;
            }
            if (spec.PayloadLiteral != "")
                least = 0;
            if (spec.PayloadBytes < least || spec.PayloadBytes > most)
                yield return $"payload.bytes {spec.PayloadBytes} (supported: {least} to {most})";
        }
    }
}
