package diskcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// The format of a segment: docs/formats/disk-cache.md.
const (
	magic      = "cartwheel cache1"
	keySize    = 40
	headerSize = keySize + 8 // key, length, checksum
	maxData    = 4 << 20
)

func segmentName(number uint64) string { return fmt.Sprintf("%016x.cache", number) }

// checksum proves a record's key and data.
func checksum(key, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, key), table, data)
}

// encode makes a record's header.
func encode(key, data []byte) []byte {
	h := append(make([]byte, 0, headerSize), key...)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(data)))
	return binary.LittleEndian.AppendUint32(h, checksum(key, data))
}

// load reads the index of what is in the directory. Segments that are none, or
// of another version, are removed: it is a cache.
func (c *Cache) load() error {
	names, err := filepath.Glob(filepath.Join(c.dir, "*.cache"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		var number uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%016x.cache", &number); err != nil || filepath.Base(name) != segmentName(number) {
			continue
		}
		s, err := c.scan(name, number)
		if err != nil {
			return err
		}
		if s == nil {
			if err := os.Remove(name); err != nil {
				return err
			}
			continue
		}
		c.segments = append(c.segments, s)
		c.used += s.size
	}
	for c.used > c.limit && len(c.segments) > 0 {
		c.drop(c.segments[0])
	}
	return nil
}

// scan reads a segment's headers; where one does not fit, the rest is cut off.
func (c *Cache) scan(name string, number uint64) (*segment, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // the first error counts
		return nil, err
	}
	head := make([]byte, headerSize)
	if _, err := f.ReadAt(head[:len(magic)], 0); err != nil || string(head[:len(magic)]) != magic {
		return nil, f.Close()
	}
	s := &segment{number: number, file: f, size: int64(len(magic))}
	for {
		_, err := f.ReadAt(head, s.size)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			_ = f.Close() // the first error counts
			return nil, err
		}
		length := binary.LittleEndian.Uint32(head[keySize:])
		if length == 0 || length > maxData || s.size+headerSize+int64(length) > info.Size() {
			break
		}
		k := string(bytes.Clone(head[:keySize]))
		s.keys = append(s.keys, k)
		c.index[k] = place{s, s.size + headerSize, length, binary.LittleEndian.Uint32(head[keySize+4:])}
		s.size += headerSize + int64(length)
	}
	if err := f.Truncate(s.size); err != nil {
		_ = f.Close() // the first error counts
		return nil, err
	}
	return s, nil
}
