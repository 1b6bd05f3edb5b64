//! On what does a scenario play? A real control plane with the controller as a process, or everything in memory on one
//! clock that stands still while there is something to do.

use crate::embedded::Embedded;
use crate::real::Real;

/// Which ground a scenario is played on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Real,
    Embedded,
}

/// What is under a world.
pub(crate) enum Ground {
    Real(Box<Real>),
    Embedded(Box<Embedded>),
}

/// Plays every scenario on both grounds: written once, shown twice.
macro_rules! scenarios {
    ($($name:ident),+ $(,)?) => {
        mod real {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() -> anyhow::Result<()> {
                    super::$name($crate::ground::Kind::Real).await
                }
            )+
        }
        mod embedded {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() -> anyhow::Result<()> {
                    super::$name($crate::ground::Kind::Embedded).await
                }
            )+
        }
    };
}
pub(crate) use scenarios;
