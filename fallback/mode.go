package fallback

// StreamMode says when the chunks of a stream reach the caller: [Passthrough] or [Buffered].
type StreamMode interface {
	buffer() int // bytes held back
}

// Passthrough hands chunks on at once. A stream that breaks off after text was delivered is an [InterruptedError].
type Passthrough struct{}

// Buffered holds chunks back until the attempt has succeeded, and replays them then: a stream that breaks off or falls
// silent is rescued by another attempt. Past MaxBytes it delivers what it holds, and goes on as Passthrough.
type Buffered struct {
	// MaxBytes is how many bytes of chunks are held back. Default 0: 1 MiB. At most 64 MiB.
	MaxBytes int
}

var (
	_ StreamMode = Passthrough{}
	_ StreamMode = Buffered{}
)

const (
	defaultBuffered = 1 << 20
	mostBuffered    = 64 << 20
)

func (Passthrough) buffer() int { return 0 }

func (b Buffered) buffer() int {
	if b.MaxBytes == 0 {
		return defaultBuffered
	}

	return b.MaxBytes
}
