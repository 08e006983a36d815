export const demoStep = async function* (): AsyncGenerator<never> {}
