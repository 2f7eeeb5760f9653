//! The bytes interpretation: a value is the value itself, and every moment is now.

use crate::port::Carry;

/// A port on bytes: a value is the value itself, and every moment is now.
pub trait OnBytes {}

impl<P: OnBytes> Carry for P {
    type V<T> = T;
    type Moment = ();

    #[inline]
    fn now(&self) {}

    #[inline]
    fn join(&mut self, (): (), (): ()) {}

    #[inline]
    fn carry<T>(value: T, (): ()) -> T {
        value
    }

    #[inline]
    fn peek<T>(carried: &T) -> &T {
        carried
    }

    #[inline]
    fn moment<T>(_: &T) {}

    #[inline]
    fn amend<T>(&mut self, carried: &mut T, (): (), change: impl FnOnce(&mut T)) {
        change(carried);
    }
}
