package override

import (
	"errors"
	"strconv"
	"strings"
)

// Why paths are refused. Admission refuses them in the same words; here it is made sure that
// nothing which came in another way changes what an object is.
var (
	errPathEmpty     = errors.New("path cannot be empty")
	errPathStart     = errors.New("path must start with /")
	errPathGap       = errors.New("path cannot contain empty string")
	errPathEscape    = errors.New("path has a ~ that is followed by neither 0 nor 1")
	errPathTypeMeta  = errors.New("cannot override typeMeta fields")
	errPathMetadata  = errors.New("cannot override metadata fields except annotations and labels")
	errPathStatus    = errors.New("cannot override status fields")
	errPathInsideKey = errors.New("path goes on after the key of a label or annotation")
)

// pointer is a path (RFC 6901): the names on the way, as they are and as they were written.
type pointer struct {
	names   []string
	written []string
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// parsePath reads the path of an operation and refuses those that no override may change.
func parsePath(path string) (pointer, error) {
	if path == "" {
		return pointer{}, errPathEmpty
	}
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return pointer{}, errPathStart
	}
	p := pointer{written: strings.Split(rest, "/")}
	for _, written := range p.written {
		if written == "" {
			return pointer{}, errPathGap
		}
		if strings.Count(written, "~") != strings.Count(written, "~0")+strings.Count(written, "~1") {
			return pointer{}, errPathEscape
		}
		p.names = append(p.names, unescape.Replace(written))
	}
	return p, p.checkAllowed()
}

func (p pointer) checkAllowed() error {
	switch p.names[0] {
	case "apiVersion", "kind":
		return errPathTypeMeta
	case "status":
		return errPathStatus
	case "metadata":
		if !p.inMetadata() {
			return errPathMetadata
		}
		if len(p.names) > 3 {
			return errPathInsideKey
		}
	}
	return nil
}

// inMetadata reports whether the path is to the labels or annotations, or to one of them.
func (p pointer) inMetadata() bool {
	return len(p.names) > 1 && p.names[0] == "metadata" && (p.names[1] == "labels" || p.names[1] == "annotations")
}

// prefixTo returns the path down to a depth, as it was written.
func (p pointer) prefixTo(depth int) string {
	return "/" + strings.Join(p.written[:depth], "/")
}

// parsePosition reads a name as a position in a list: digits, without zeros in front.
func parsePosition(name string) (int, bool) {
	if name == "" || len(name) > 9 || (len(name) > 1 && name[0] == '0') {
		return 0, false
	}
	for _, digit := range name {
		if digit < '0' || digit > '9' {
			return 0, false
		}
	}
	at, err := strconv.Atoi(name)
	return at, err == nil
}
