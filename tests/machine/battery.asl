// A battery that supplies a constant 15 W, for wattwire's test machine. Its model name says that
// nothing measures it. Timer counts 100 ns, so 15 W use a mWh in 2400000 of its steps. The integers
// of a machine of qemu have 32 bits, so Timer wraps after 429 s, and a difference does not.
DefinitionBlock ("", "SSDT", 2, "WTWIRE", "INVENTED", 1)
{
    Scope (\_SB)
    {
        Device (BAT0)
        {
            Name (_HID, EisaId ("PNP0C0A"))
            Name (_UID, 1)
            Name (_PCL, Package () { \_SB })

            Method (_STA)
            {
                Return (0x1F)
            }

            // Unit mWh, design and full capacity, rechargeable, mV, warning, low, steps, names.
            Method (_BIF)
            {
                Return (Package ()
                {
                    0, 50000, 50000, 1, 12000, 5000, 1000, 10, 10,
                    "battery-invented", "1", "LION", "wattwire"
                })
            }

            Name (LEFT, 40000)
            Name (SEEN, 0)

            // Discharging, mW, mWh, mV.
            Method (_BST, 0, Serialized)
            {
                Local0 = (Timer - SEEN) / 2400000
                SEEN += Local0 * 2400000
                LEFT -= Local0
                Local1 = Package () { 1, 15000, 0, 12000 }
                Local1 [2] = LEFT
                Return (Local1)
            }
        }
    }
}
