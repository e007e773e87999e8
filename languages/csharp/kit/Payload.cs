using System;
using System.IO;
using System.Text;

namespace Wattwire {
    /// An arriving message. `Reply` is null if a request must not be answered.
    public struct Arrival {
        internal ulong Seq;
        internal long SendNs, EntryNs;
        internal int Bytes;
        internal bool HasSeq, IsCorrupt, IsForeign, IsRecorded;

        /// The reply to hand over; valid until this thread's next request.
        public byte[] Reply { get; internal set; }
    }

    /// Creates, checks and answers the messages of one run. All messages are bytes: the characters
    /// of a text, or the nominal bytes of a record in the order of C-32's table.
    public sealed class Payload {
        const string Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        const string HexDigits = "0123456789abcdef";
        const int TokenBytes = 8; // the part of the fill that identifies a run (C-21)
        const int RecordNameBytes = 16, RecordBytesMin = 96, RecordStepBytes = 16;
        const int RecordPoseAt = 32;
        const int RecordFirstSample = 9; // the first sample's word, after name and pose

        [ThreadStatic] static byte[] acknowledgement;

        readonly bool isRecord, isText, checksFill;
        readonly string reply;
        readonly byte[] template, literalReply;
        readonly long[] senders;
        readonly int wordBytes, fillAt, fillEnd;

        public bool IsLiteral { get; }

        /// `senders` are the nodes whose messages arrive; for a client, the client itself.
        public Payload(Spec spec, long[] senders) {
            this.senders = senders;
            isRecord = spec.PayloadEncoding == "record";
            isText = spec.PayloadEncoding == "text";
            wordBytes = isText ? 16 : 8;
            checksFill = spec.Verify == "full";
            reply = spec.Reply;
            literalReply = Encoding.UTF8.GetBytes(spec.ReplyLiteral);
            if (isRecord)
                literalReply = EmptyRecord(literalReply);

            template = Encoding.UTF8.GetBytes(spec.PayloadLiteral);
            IsLiteral = template.Length > 0;
            if (IsLiteral)
                return;
            int bytes = (int)spec.PayloadBytes;
            fillAt = 2 * wordBytes;
            template = new byte[isRecord ? bytes - bytes % RecordStepBytes : bytes];
            fillEnd = bytes < 3 * wordBytes ? bytes : template.Length - wordBytes;
            Fill((ulong)spec.PayloadSeed);
        }

        static byte[] EmptyRecord(byte[] name) {
            if (name.Length > RecordNameBytes)
                throw new NodeError(ExitCode.Unsupported,
                    $"reply.literal: this kit allows at most {RecordNameBytes} bytes in a record");
            var record = new byte[RecordBytesMin];
            name.CopyTo(record, RecordNameBytes);
            return record;
        }

        /// Writes the words of C-19 after the header, as bytes, characters, or a record's fields.
        void Fill(ulong seed) {
            var words = new ulong[template.Length / 8];
            for (int j = 0; j < words.Length; j++) {
                seed += 0x9E3779B97F4A7C15;
                ulong z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9;
                z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
                words[j] = z ^ (z >> 31);
            }
            Buffer.BlockCopy(words, 0, template, fillAt, fillEnd - fillAt);

            int charactersEnd = isText ? fillEnd : isRecord ? RecordPoseAt : fillAt;
            for (int i = fillAt; i < charactersEnd; i++)
                template[i] = (byte)Alphabet[template[i] % Alphabet.Length];
            if (isRecord)
                FillNumbers(words);
        }

        /// Writes pose and samples of a record.
        void FillNumbers(ulong[] words) {
            int samples = (template.Length - RecordBytesMin) / RecordStepBytes;
            var record = new BinaryWriter(new MemoryStream(template));
            record.Seek(RecordPoseAt, SeekOrigin.Begin);
            for (int j = 2; j < RecordFirstSample + samples; j++) {
                if (j >= RecordFirstSample) {
                    record.Write((uint)(j - RecordFirstSample)); // id
                    record.Write((uint)(words[j] % 256)); // state
                }
                record.Write((int)(words[j] >> 32) / 1024.0);
            }
        }

        /// Returns a message that can be stamped.
        public byte[] New() => (byte[])template.Clone();

        /// Writes sequence and send time; it does not change literals.
        public void Stamp(byte[] message, ulong seq, long sendNs) {
            if (IsLiteral)
                return;
            WriteWord(message, 0, seq);
            WriteWord(message, wordBytes, (ulong)sendNs);
            if (fillEnd < message.Length)
                WriteWord(message, fillEnd, seq);
        }

        void WriteWord(byte[] message, int at, ulong word) {
            for (int end = at + wordBytes; at < end; word >>= 8)
                if (isText) {
                    message[at++] = (byte)HexDigits[(int)(word >> 4 & 15)];
                    message[at++] = (byte)HexDigits[(int)(word & 15)];
                } else {
                    message[at++] = (byte)word;
                }
        }

        /// Returns false unless eight bytes or sixteen lower-case digits are present.
        bool TryReadWord(byte[] data, int at, out ulong word) {
            word = 0;
            if (data.Length < at + wordBytes)
                return false;
            if (!isText) {
                word = BitConverter.ToUInt64(data, at);
                return true;
            }
            for (int i = wordBytes - 1; i >= 0; i--) { // low byte first, but its high digit first
                int digit = Digit(data[at + (i ^ 1)]);
                if (digit < 0)
                    return false;
                word = word << 4 | (uint)digit;
            }
            return true;
        }

        static int Digit(byte character) {
            if (character >= '0' && character <= '9')
                return character - '0';
            return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
        }

        /// Determines the verdict of an arrival (C-21).
        public Arrival Check(byte[] data) {
            var arrival = new Arrival { Bytes = data.Length, SendNs = Constants.UnknownNs };
            if (IsLiteral) {
                arrival.IsCorrupt = !IsEqual(data, template);
                return arrival;
            }
            arrival.HasSeq = TryReadWord(data, 0, out arrival.Seq);
            if (!arrival.HasSeq) {
                arrival.IsCorrupt = true;
                return arrival;
            }
            if (TryReadWord(data, wordBytes, out ulong sendNs))
                arrival.SendNs = (long)sendNs;
            int tokenEnd = fillAt + (isRecord ? RecordNameBytes : TokenBytes);
            arrival.IsForeign = !IsSender((long)(arrival.Seq >> 48))
                || !HasFill(data, Math.Min(fillEnd, tokenEnd));
            arrival.IsCorrupt = data.Length != template.Length
                || checksFill && !HasFill(data, fillEnd) || !HasTrailer(data, arrival.Seq);
            return arrival;
        }

        bool IsSender(long node) {
            foreach (long sender in senders)
                if (sender == node)
                    return true;
            return false;
        }

        /// Compares the fill as far as it is present.
        bool HasFill(byte[] data, int end) {
            end = Math.Min(end, data.Length);
            for (int i = fillAt; i < end; i++)
                if (data[i] != template[i])
                    return false;
            return true;
        }

        bool HasTrailer(byte[] data, ulong seq) => fillEnd == template.Length
            || TryReadWord(data, fillEnd, out ulong trailer) && trailer == seq;

        /// Returns the reply to a request (C-23).
        public byte[] Reply(byte[] request) {
            if (reply == "echo")
                return request;
            return reply == "literal" ? literalReply : Acknowledge(request);
        }

        /// Returns an ack in a buffer of this thread.
        byte[] Acknowledge(byte[] request) {
            int bytes = isRecord ? RecordBytesMin : Math.Min(wordBytes, request.Length);
            if (acknowledgement == null || acknowledgement.Length != bytes)
                acknowledgement = new byte[bytes];
            Buffer.BlockCopy(request, 0, acknowledgement, 0, isRecord ? fillAt : bytes);
            if (isRecord)
                Buffer.BlockCopy(request, request.Length - wordBytes,
                    acknowledgement, bytes - wordBytes, wordBytes);
            return acknowledgement;
        }

        public bool IsReply(byte[] data, byte[] message, ulong seq) {
            if (reply != "echo" || IsLiteral)
                return IsEqual(data, Reply(message));
            Arrival echo = Check(data);
            return !echo.IsCorrupt && !echo.IsForeign && echo.Seq == seq;
        }

        static bool IsEqual(byte[] left, byte[] right) {
            if (left.Length != right.Length)
                return false;
            for (int i = 0; i < left.Length; i++)
                if (left[i] != right[i])
                    return false;
            return true;
        }
    }
}
