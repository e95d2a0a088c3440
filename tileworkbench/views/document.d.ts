export function draw(el: HTMLElement, spec: unknown, ctx: { leave?: () => void }): void;
