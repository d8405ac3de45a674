package acceptance

import (
	"strings"
	"testing"
)

func TestFio_VerifiesWhatItWrote(t *testing.T) {
	d := startPrograms(t, "fio")
	dir := d.mkdir("fio")
	for name, options := range map[string]string{
		"buffered random": "--rw=randrw --bsrange=512-128k --bs_unaligned=1 --numjobs=4 --size=24m --ioengine=psync --fsync=200",
		"direct":          "--rw=randwrite --bs=4k --direct=1 --numjobs=2 --size=8m --ioengine=libaio --iodepth=16",
		"mapped":          "--rw=randrw --bs=4k --ioengine=mmap --numjobs=2 --size=16m",
		"sequential":      "--rw=write --bs=1m --numjobs=2 --size=128m --ioengine=psync --end_fsync=1",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := try("fio", append([]string{"--name=v", "--directory=" + dir[0], "--verify=crc32c", "--verify_state_save=0", "--verify_fatal=1", "--do_verify=1",
				"--randseed=7", "--group_reporting", "--unlink=1"}, strings.Fields(options)...)...)
			if err != nil {
				t.Fatalf("fio: %v\n%s", err, tail([]byte(out), 3000))
			}
		})
	}
	// What one site wrote is verified at another.
	job := "--name=shared --verify=crc32c --verify_state_save=0 --verify_fatal=1 --rw=write --bs=64k --size=64m --ioengine=psync --end_fsync=1 --randseed=9 --filename="
	d.run("fio", strings.Fields(job+dir[0]+"/shared --do_verify=0")...)
	d.run("fio", strings.Fields(job+dir[1]+"/shared --verify_only=1")...)
}
