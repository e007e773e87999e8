// Answers the questions of tests/toolchains/test_kits.py about the kit, one line for each line.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"wattwire"
)

func main() {
	input := bufio.NewReader(os.Stdin)
	for line, err := input.ReadString('\n'); err == nil; line, err = input.ReadString('\n') {
		words := strings.Fields(strings.ReplaceAll(line, " -\n", " \n")) // "-" is an empty value
		fmt.Println(answer(words[0], append(words[1:], "")))
	}
}

func answer(question string, words []string) any {
	switch question {
	case "clock":
		return wattwire.NowNs()
	case "payload":
		data := stamped(words, words[3], words[4])
		return hex.EncodeToString(data)
	case "record":
		text, err := encoded(stamped(words, "record", words[3]))
		if err != nil {
			return err
		}
		return string(text)
	case "check":
		return verdict(made(words[0], words[1], words[2], words[3], words[4]), unhex(words[5]))
	case "check-record":
		data, _ := decoded(unhex(words[4]))
		return verdict(made(words[0], "record", words[1], words[2], words[3]), data)
	case "samples":
		return samples(words)
	}
	return spec(words[0])
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func unhex(text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

func made(seed, encoding, bytes, node, verify string) *wattwire.Payload {
	spec := &wattwire.Spec{
		PayloadSeed:     number(seed),
		PayloadBytes:    number(bytes),
		PayloadEncoding: encoding,
		Verify:          verify,
	}
	return wattwire.NewPayload(spec, []int64{number(node)})
}

func stamped(words []string, encoding, bytes string) []byte {
	seq, _ := strconv.ParseUint(words[1], 10, 64)
	sendNs, _ := strconv.ParseInt(words[2], 10, 64)
	payload := made(words[0], encoding, bytes, "0", "full")
	message := payload.New()
	payload.Stamp(message, 1, 2) // the next stamp must overwrite this one
	payload.Stamp(message, seq, sendNs)
	return message
}

func verdict(payload *wattwire.Payload, data []byte) string {
	verdict, seq := payload.Check(data)
	switch verdict {
	case wattwire.Unreadable:
		return "corrupt -"
	case wattwire.Corrupt:
		return fmt.Sprint("corrupt ", seq)
	case wattwire.Foreign:
		return fmt.Sprint("foreign ", seq)
	}
	return fmt.Sprint("ok ", seq)
}

func samples(words []string) string {
	var numbers []int64
	for _, word := range words[5 : len(words)-1] {
		unsigned, _ := strconv.ParseUint(strings.TrimPrefix(word, "-"), 10, 64)
		if word[0] == '-' {
			unsigned = -unsigned
		}
		numbers = append(numbers, int64(unsigned))
	}
	room := int(number(words[4]))
	var kept []wattwire.Sample
	for n := numbers; len(n) > 0 && len(kept) < room; n = n[8:] {
		kept = append(kept, wattwire.Sample{Seq: uint64(n[0]), IntendedNs: n[1], BeginNs: n[2],
			EndNs: n[3], Bytes: uint32(n[4]), Peer: uint16(n[5]), Kind: byte(n[6]),
			Flags: byte(n[7])})
	}
	overflow := len(numbers)/8 - len(kept)
	err := wattwire.WriteSamples(words[0], byte(number(words[1])), uint16(number(words[2])),
		number(words[3]), int64(overflow), kept)
	if err != nil {
		panic(err)
	}
	return fmt.Sprint(len(kept), " ", overflow)
}

// spec returns the key that the kit rejects, or "ok".
func spec(path string) string {
	_, err := wattwire.ReadSpec(path)
	var specError *wattwire.SpecError
	if errors.As(err, &specError) {
		return specError.Key
	}
	return "ok"
}
