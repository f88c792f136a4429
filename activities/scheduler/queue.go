package scheduler

// queue gives items in order, the first of compare first. To order all of it would cost
// more than is needed: it is a heap, so that ordering costs little and each item that is
// taken a little more.
type queue[T any] struct {
	items   []T
	compare func(a, b T) int
}

// order has to come before the first pop, and after the last item was added. From then
// on the first item is the next.
func (q *queue[T]) order() {
	for i := len(q.items)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// pop takes the next item out of a queue that is not empty.
func (q *queue[T]) pop() T {
	next, last := q.items[0], len(q.items)-1
	q.items[0] = q.items[last]
	q.items = q.items[:last]
	q.sink(0)
	return next
}

// sink moves an item down until nothing below comes before it.
func (q *queue[T]) sink(i int) {
	for {
		first := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(q.items) && q.compare(q.items[child], q.items[first]) < 0 {
				first = child
			}
		}
		if first == i {
			return
		}
		q.items[i], q.items[first] = q.items[first], q.items[i]
		i = first
	}
}
