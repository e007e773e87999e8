using System;
using System.IO;
using System.Text;

namespace Wattwire {
    /// The records of a node, in memory that is allocated before the window.
    sealed class Samples {
        const int ReservedBytes = 16;
        readonly Sample[] kept;

        public long Recorded { get; private set; }
        public long Overflow { get; private set; }

        public Samples(long capacity) {
            kept = new Sample[capacity];
            Array.Clear(kept, 0, kept.Length); // touches the pages, to avoid faults in the window
        }

        public void Add(Sample sample) {
            if (Recorded == kept.Length)
                Overflow++;
            else
                kept[Recorded++] = sample;
        }

        /// Writes the sample file (C-24).
        public void Write(string path, byte role, ushort node, ulong seed) {
            using (var file = new BinaryWriter(new BufferedStream(File.Create(path)))) {
                file.Write(Encoding.ASCII.GetBytes(Constants.FileMagic));
                file.Write(Constants.FileVersion);
                file.Write(Constants.HeaderBytes);
                file.Write(Constants.RecordBytes);
                file.Write(role);
                file.Write(Constants.FileClock);
                file.Write(node);
                file.Write((ushort)0);
                file.Write((uint)0);
                file.Write((ulong)Recorded);
                file.Write((ulong)Overflow);
                file.Write(seed);
                file.Write(new byte[ReservedBytes]);
                for (long i = 0; i < Recorded; i++)
                    kept[i].Write(file);
            }
        }
    }
}
